/** The incident that is practised in the cluster: its story, its tasks with their hints, and what is still missing. */

import { html, nothing } from "lit";
import { visible } from "fk/escape";
import { duration, plural } from "fk/format";

/** @typedef {import("fk/app").App} App */

/** @type {import("fk/app").View} */
export const scenarioView = {
  render(app) {
    const { scenario } = app;
    if (!scenario) return html`<p class="muted pad">No scenario is played in this cluster.</p>`;
    const passed = scenario.tasks.filter((/** @type {any} */ one) => one.passed).length;
    return html`<div class="scenario pad"><h2>${visible(scenario.title)}</h2>
      ${paragraphs(scenario.text)}
      <p role="status"><strong>${passed} of ${plural(scenario.tasks.length, "task")} passed</strong>${scenario.passed ? html` <span class="tag ok">✓ solved</span>` : nothing}</p>
      <ol class="tasks">${scenario.tasks.map(task)}</ol></div>`;
  },
  focusTarget: () => document.querySelector(".scenario summary") ?? document.getElementById("main"),
};

/** @param {any} one */
function task(one) {
  const budget = [one.budget.seconds === null ? "" : `within ${duration(one.budget.seconds)}`, one.budget.requests === null ? "" : `with ${plural(one.budget.requests, "request")} at most`].filter(Boolean).join(", ");
  return html`<li class="task"><h3>${visible(one.title)} <span class="tag ${one.passed ? "ok" : "waiting"}">${one.passed ? "✓ passed" : "– open"}</span>${budget ? html` <span class="muted">${budget}</span>` : nothing}</h3>
    ${paragraphs(one.text)}
    ${one.failed.length ? html`<ul class="missing" aria-label="What is missing">${one.failed.map((/** @type {string} */ text) => html`<li>${visible(text)}</li>`)}</ul>` : nothing}
    ${one.hints.map((/** @type {string} */ hint, /** @type {number} */ index) => html`<details class="hint"><summary>Hint ${index + 1}</summary>${paragraphs(hint)}</details>`)}
  </li>`;
}

/** Paragraphs, and code between back-ticks: the only Markdown of scenarios. @param {string} text */
function paragraphs(text) {
  return String(text ?? "").split(/\n\s*\n/).filter((part) => part.trim()).map((part) => html`<p>${part.split("`").map((piece, index) => (index % 2 ? html`<code>${visible(piece)}</code>` : visible(piece.replaceAll("\n", " "))))}</p>`);
}
