/** What the tests of modules are made of: see test_modules.py. */
type Assertions = { equal(found: unknown, expected: unknown): void; ok(value: unknown, message?: string): void };
type Tests = Record<string, (assert: Assertions) => void | Promise<void>>;
