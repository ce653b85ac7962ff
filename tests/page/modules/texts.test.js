import { pythonLiteral, shellQuote, visible, visibleLines } from "fk/escape";
import { bytes, clockTime, dateTime, duration, inline, milliseconds, plural, qualified, time } from "fk/format";

/** @type {Tests} */
export const tests = {
  "what is invisible or turns the text around is shown": ({ equal }) => {
    equal(visible("a\u202eb\u200b\u0007\ttab\nline\u{e0041}\u007f"), "a⟨U+202E⟩b⟨U+200B⟩␇␉tab␊line⟨U+E0041⟩␡");
    equal(visibleLines("a\tb\nc\rd"), "a\tb\nc␍d");
    equal(visible(null), "");
  },
  "emoji and other letters stay": ({ equal }) => equal(visible("ä漢字😀é"), "ä漢字😀é"),
  "words of a shell": ({ equal }) => {
    equal(["a/b:c=1", "a b", "it's", "", "a\nb'"].map(shellQuote), ["a/b:c=1", "'a b'", "'it'\\''s'", "''", "$'a\\012b\\''"]);
  },
  "literals of Python": ({ equal }) => equal(pythonLiteral({ a: [null, true, "é\n", 1.5] }), '{"a": [None, True, "\\u00e9\\n", 1.5]}'),
  "times have milliseconds and a zone": ({ equal }) => {
    equal([time(33087.522), clockTime(33087.522), dateTime(0), time(NaN)], ["09:11:27.522", "09:11:27", "1970-01-01 00:00:00.000 UTC", ""]);
    equal(time(59.9996), "00:01:00.000");
  },
  "durations have one unit": ({ equal }) => {
    equal([0.0012, 0.5, 3.04, 90, 240, 7200, 200000, NaN].map(duration), ["1.2 ms", "500 ms", "3 s", "90 s", "4 m", "2 h", "2 d", ""]);
    equal([milliseconds(3.14), milliseconds(31.4), milliseconds(NaN)], ["3.1", "31", "…"]);
  },
  "numbers and nouns": ({ equal }) => equal([plural(1, "change"), plural(1204, "change"), plural(2, "watch"), bytes(999), bytes(1_500_000)], ["1 change", "1,204 changes", "2 watches", "999 B", "1.5 MB"]),
  "values on one line": ({ equal }) => equal([inline(undefined), inline({ a: 1 }), inline("x".repeat(90)).length, qualified("", "a"), qualified("b", "a")], ["∅", '{"a":1}', 80, "a", "b/a"]),
};
