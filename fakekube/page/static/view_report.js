/** The report of `fakekube check`: a row for each rule, and the trial of those that failed or warned. */

import { html, nothing } from "lit";
import { copy } from "fk/dialog";
import { visible, visibleLines } from "fk/escape";

/** @typedef {import("fk/app").App} App */

const VERDICTS = ["fail", "warn", "not exercised", "pass"];
const SIGNS = /** @type {Record<string, string>} */ ({ fail: "✕", warn: "!", pass: "✓", "not exercised": "–" });

/** @type {import("fk/app").View} */
export const reportView = {
  render(app) {
    const { report } = app;
    if (!report) return html`<p class="muted pad">There is no report in this page.</p>`;
    const wanted = app.route.params.verdict ?? "";
    const classes = app.route.params.class ?? "";
    const words = (app.route.params.find ?? "").toLowerCase();
    const rows = report.verdicts.filter((/** @type {any} */ one) => (!wanted || one.verdict === wanted) && (!classes || one.class === classes) && (!words || textOf(one).includes(words)));
    return html`<div class="report pad"><h2>${visible(report.client)}</h2>
      <p class="buttons" role="group" aria-label="Verdicts">${VERDICTS.map((verdict) => html`<button type="button" class="chip" aria-pressed=${wanted === verdict ? "true" : "false"} @click=${() => app.set({ verdict: wanted === verdict ? undefined : verdict })}>${report.verdicts.filter((/** @type {any} */ one) => one.verdict === verdict).length} ${verdict}</button>`)}
        ${["A", "B", "C"].map((name) => html`<button type="button" class="chip" aria-pressed=${classes === name ? "true" : "false"} title="class ${name}" @click=${() => app.set({ class: classes === name ? undefined : name })}>${name}</button>`)}
        <label>find <input type="search" .value=${app.route.params.find ?? ""} @change=${(/** @type {any} */ event) => app.set({ find: event.target.value || undefined })}></label></p>
      ${(report.remarks ?? []).map((/** @type {string} */ text) => html`<p class="muted">${visible(text)}</p>`)}
      <ul class="verdicts">${rows.map((/** @type {any} */ one) => verdict(app, one))}</ul>
      <p class="muted">seed ${visible(report.seed)}, ${visible(report.seconds)} s</p></div>`;
  },
  focusTarget: () => document.querySelector(".verdicts .primary") ?? document.querySelector(".verdicts summary"),
};

/** What is searched. @param {any} one */
function textOf(one) {
  return [one.rule, one.text, one.reason, one.fix, ...one.evidence].join("\n").toLowerCase();
}

/** @param {App} app @param {any} one */
function verdict(app, one) {
  const open = app.route.parts[0] === one.rule || one.verdict === "fail";
  return html`<li class="verdict ${one.verdict.replace(" ", "-")}"><details ?open=${open}>
    <summary><strong class="rule">${visible(one.rule)}</strong> <span class="tag">${SIGNS[one.verdict]} ${one.verdict}</span> <span class="muted">${visible(one.class)}</span> ${visible(one.reason || one.text)}${one.accepted ? html` <span class="tag">accepted: ${visible(one.accepted)}</span>` : nothing}</summary>
    <dl class="facts-list"><div><dt>rule</dt><dd>${visible(one.text)}</dd></div>${one.fix ? html`<div><dt>fix</dt><dd>${visible(one.fix)}</dd></div>` : nothing}<div><dt>source</dt><dd>${visible(one.source)}</dd></div></dl>
    ${one.evidence.length ? html`<pre class="code" tabindex="0" aria-label="Evidence">${visibleLines(one.evidence.join("\n"))}</pre>` : nothing}
    <p class="buttons">${one.trial ? html`<button type="button" class="primary" @click=${() => app.open("timeline", [], { trial: one.trial })}>Open the trial</button>` : nothing}
      <button type="button" @click=${() => copy(app, [`${one.rule} ${one.verdict}: ${one.text}`, ...one.evidence].join("\n"), "Copied")}>Copy</button></p>
  </details></li>`;
}
