#include "longhaul/status/page_text.h"

namespace longhaul {

const char kPageHtml[] = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Training</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="shared.js" defer></script>
<script src="page.js" defer></script>
</head>
<body>
<header>
<h1 id="title">Training</h1>
<p id="phase" role="status">The page needs JavaScript; <a href="metrics">/metrics</a> and
<a href="status.json">/status.json</a> do not.</p>
</header>
<main>
<section><h2>Progress</h2>
<progress id="bar" max="1" hidden></progress>
<dl id="progress"></dl></section>
<section><h2>Curves</h2><div id="curves"></div></section>
<section><h2>Where the time goes</h2><div id="time"></div></section>
<section><h2>Checkpoints</h2><p id="trouble" hidden></p><dl id="saves"></dl><ol id="checkpoints"></ol></section>
<section><h2>Runs</h2><div class="wide"><table id="runs"></table></div></section>
<section><h2>Log</h2><pre id="log" tabindex="0"></pre></section>
<section><h2>Do</h2>
<p><label>Token <input id="token" type="password" autocomplete="off" size="24"></label>
<button id="checkpoint">Save a checkpoint</button> <button id="stop">Stop the training</button></p>
<p id="answer" role="status"></p></section>
</main>
</body>
</html>
)html";

const char kPageStyle[] =
    R"css(:root { --ink: #1a1c20; --dim: #5c6470; --line: #d5d9e0; --back: #ffffff; --mark: #2a62c9;
  --bad: #b3261e; --good: #1b7f3b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --dim: #9aa3b0; --line: #363b44; --back: #14161a; --mark: #7aa7ff; --bad: #ff8a80;
    --good: #6fd08c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--back); color: var(--ink);
  font: 16px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1.5rem 0 .5rem; border-bottom: 1px solid var(--line); }
#phase { margin: .2rem 0; font-weight: 600; }
#phase.bad, #trouble { color: var(--bad); }
#phase.good { color: var(--good); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
progress { width: 100%; accent-color: var(--mark); }
#curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { font-size: .85rem; overflow-wrap: anywhere; }
svg { width: 100%; height: 8rem; border: 1px solid var(--line); }
svg path { fill: none; stroke: var(--mark); stroke-width: 1.5; stroke-linecap: round; vector-effect: non-scaling-stroke; }
.row { display: grid; grid-template-columns: 8rem 1fr 8rem; gap: .5rem; align-items: center; }
.row meter { width: 100%; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
td, th { padding: .15rem .6rem .15rem 0; text-align: left; vertical-align: top; white-space: nowrap; }
td:last-child { white-space: normal; overflow-wrap: anywhere; }
pre { max-height: 20rem; overflow: auto; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere;
  border: 1px solid var(--line); padding: .5rem; margin: 0; }
pre .warning { color: var(--mark); }
pre .error { color: var(--bad); }
ol { margin: .3rem 0; overflow-wrap: anywhere; }
input, button { font: inherit; padding: .3rem .6rem; }
)css";

const char kSharedScript[] = R"js('use strict';
const $ = id => document.getElementById(id);
// Names come from programs: they are inserted as text, never as HTML.
function element(name, text, cls) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (cls) made.className = cls;
  return made;
}
function duration(s) {
  if (s === null || s === undefined || !isFinite(s)) return 'unknown';
  s = Math.round(s);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + s % 60 + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s / 60) % 60 + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s / 3600) % 24 + ' h';
}
function size(b) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (b >= 1000 && i < units.length - 1) { b /= 1000; ++i; }
  return (i ? b.toPrecision(3) : b) + ' ' + units[i];
}
const number = v => v === null || v === undefined || !isFinite(v) ? 'not finite' :
  Math.abs(v) >= 1e6 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(4) : String(+v.toPrecision(6));
const clock = t => t > 0 ? new Date(t * 1000).toLocaleString() : '';
)js";

const char kPageScript[] = R"js('use strict';
function fill(id, rows) {
  const nodes = [];
  for (const [name, value] of rows) if (value !== null) nodes.push(element('dt', name), element('dd', value));
  $(id).replaceChildren(...nodes);
}
function progress(s) {
  $('title').textContent = s.directory || 'Training on ' + s.host;
  document.title = (s.step === null ? '' : 'step ' + s.step + ' - ') + (s.directory || 'Training');
  $('phase').textContent = s.hung ? 'hung: ' + s.hung : s.phase + (s.why ? ': ' + s.why : '');
  $('phase').className = s.hung ? 'bad' : s.phase === 'training' ? 'good' : '';
  const known = s.last_step > 0 && s.step !== null;
  $('bar').hidden = !known;
  if (known) $('bar').value = Math.min(1, s.step / s.last_step);
  fill('progress', [
    ['step', s.step === null ? 'not known' : s.step + (s.last_step > 0 ? ' of ' + s.last_step : '')],
    ['speed', s.steps_per_second.toPrecision(4) + ' steps/s'],
    ['left', s.seconds_left === null ? null : duration(s.seconds_left)],
    ['last step', s.last_step_time > 0 ? duration(s.now - s.last_step_time) + ' ago' : null],
    ['began', clock(s.began) + ', ' + duration(s.now - s.began) + ' ago'],
    ['host', s.host],
    ...s.scalars.map(([tag, step, value]) => [tag, number(value) + ' at step ' + step]),
  ]);
}
function saves(s) {
  const m = s.saves, copies = s.mirror;
  const trouble = [];
  if (m.consecutive_failures > 0) {
    trouble.push((m.consecutive_failures === 1 ? 'the last save has failed: ' : m.consecutive_failures +
      ' saves in a row have failed: ') + m.last_error + (s.history ? '; ' + duration(s.history.unsaved) +
      ' of training are in no checkpoint' : ''));
  }
  if (copies && copies.consecutive_failures > 0) {
    trouble.push(copies.consecutive_failures + ' copies to the mirror have failed: ' + copies.last_error);
  }
  $('trouble').hidden = trouble.length === 0;
  $('trouble').textContent = trouble.join(' ');
  fill('saves', [
    ['last', m.last_success_time > 0 ? m.last_prefix + ', ' + duration(s.now - m.last_success_time) + ' ago' : 'none'],
    ['saved', s.saved + (s.failed_saves ? ', ' + s.failed_saves + ' attempts failed' : '')],
    ['size', s.last_save ? size(s.last_save.bytes) + ' in ' + s.last_save.total.toPrecision(3) + ' s, of which training '
      + 'stood still for ' + s.last_save.stall.toPrecision(3) + ' s at most' : null],
    ['restored', s.restored_from || 'nothing'],
    ['disk', s.free_bytes === null ? null : size(s.free_bytes) + ' free'],
  ]);
  $('checkpoints').replaceChildren(...s.checkpoints.map(c => element('li', c)));
}
function time(s) {
  const h = s.history;
  if (!h) return $('time').replaceChildren(element('p', 'This process keeps no journal.'));
  const total = h.time.reduce((sum, [, t]) => sum + t, 0) || 1;
  const rows = [element('p', h.goodput.toFixed(1) + ' % of the time went to steps that were kept, in ' + h.runs +
    ' runs with ' + h.interruptions + ' interruptions.' + (h.unsaved > 0 ? ' The steps of the last ' +
    duration(h.unsaved) + ' are in no checkpoint yet: a kill would lose them.' : ''))];
  for (const [name, t] of h.time) {
    const row = element('div', undefined, 'row'), bar = element('meter');
    bar.value = t / total;
    row.append(element('span', name), bar, element('span', duration(t)));
    rows.push(row);
  }
  for (const rollback of h.rollbacks.slice(-10)) rows.push(element('p', rollback));
  $('time').replaceChildren(...rows);
}
function runs(s) {
  const head = element('tr');
  for (const name of ['run', 'began', 'end', 'from step', 'to step', 'host', 'why']) head.append(element('th', name));
  const rows = ((s.history && s.history.past) || []).slice(-20).reverse().map(r => {
    const row = element('tr');
    for (const v of [r.number, clock(r.began), r.end, r.from_step, r.last_step, r.host, r.why]) {
      row.append(element('td', v === null ? '' : String(v)));
    }
    return row;
  });
  $('runs').replaceChildren(head, ...rows);
}
function log(s) {
  const box = $('log'), end = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  box.replaceChildren(...s.log.map(([t, level, text]) =>
    element('span', new Date(t * 1000).toLocaleTimeString() + ' ' + level + ' ' + text + '\n', level)));
  if (end) box.scrollTop = box.scrollHeight;
}
function curve(tag, points) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 300 100');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', tag);
  const finite = points.filter(p => p[1] !== null);
  const ys = finite.map(p => p[1]), low = Math.min(...ys), high = Math.max(...ys);
  const first = points[0][0], steps = points[points.length - 1][0] - first || 1;
  let d = '', gap = true;
  for (const [step, value] of points) {
    if (value === null) { gap = true; continue; }
    const x = 300 * (step - first) / steps, y = high > low ? 96 - 92 * (value - low) / (high - low) : 50;
    d += (gap ? 'M' : 'L') + x.toFixed(1) + ' ' + y.toFixed(1) + (gap ? 'h.01' : '');
    gap = false;
  }
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', d);
  svg.append(path);
  const figure = element('figure');
  const range = ys.length ? ', from ' + number(low) + ' to ' + number(high) : ', no finite value';
  const bad = points.length - finite.length;
  figure.append(element('figcaption', tag + range + (bad ? ', ' + bad + ' not finite' : '') +
    ', steps ' + first + ' to ' + points[points.length - 1][0]), svg);
  return figure;
}
let lost = 0;
async function load(path) {
  const reply = await fetch(path, {cache: 'no-store'});
  if (!reply.ok) throw new Error(path + ': ' + reply.status + ' ' + await reply.text());
  return reply.json();
}
async function look() {
  if (!document.hidden) {
    try {
      const s = await load('status.json');
      progress(s); saves(s); time(s); runs(s); log(s);
      lost = 0;
    } catch (error) {
      lost += 1;
      $('phase').className = 'bad';
      $('phase').textContent = 'The process does not answer: it has ended, or the line is cut. ' + error.message;
    }
  }
  setTimeout(look, lost > 3 ? 30000 : 5000);
}
async function draw() {
  if (!document.hidden) {
    try {
      const all = Object.entries(await load('curves.json')).filter(([, points]) => points.length > 0);
      $('curves').replaceChildren(...(all.length ? all.map(([tag, points]) => curve(tag, points)) :
        [element('p', 'No scalar has been written yet.')]));
    } catch (error) { /* look() tells of it */ }
  }
  setTimeout(draw, 30000);
}
async function ask(path) {
  const headers = $('token').value ? {Authorization: 'Bearer ' + $('token').value} : {};
  $('answer').textContent = 'asking';
  try {
    const reply = await fetch(path, {method: 'POST', headers});
    $('answer').textContent = await reply.text();
  } catch (error) {
    $('answer').textContent = 'The process does not answer: it has ended, or the line is cut. ' + error.message;
  }
}
$('checkpoint').onclick = () => ask('checkpoint');
$('stop').onclick = () => { if (confirm('Stop the training, with a last checkpoint?')) ask('stop'); };
look();
draw();
)js";

}  // namespace longhaul
