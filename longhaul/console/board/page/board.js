'use strict';
// The board of trainings. What comes from files is inserted as text, never as HTML, and curves get no names.
const colours = ['#3b7ddd', '#e07b39', '#2f9e6e', '#c94f7c', '#8a63d2', '#b58900', '#2aa1b3', '#d0453f', '#6f8f2f',
  '#a0705a'];
const colourOf = run => colours[run % colours.length];
const sections = ['scalars', 'images', 'histograms', 'texts', 'timeline', 'checkpoints', 'options'];
const mostChosen = 12;  // runs that are chosen at first

let data = null;  // of /runs.json
let section = 'scalars';
const chosen = new Set(), seen = new Set();
const charts = new Map();  // by tag, of the section "scalars"
const panels = new Map();  // by run and tag, of images, histograms and texts
const listed = new Map();  // the runs on the left, by number

const ago = t => t > 0 && data ? duration(Math.max(0, data.now - t)) + ' ago' : '';
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const runsChosen = () => data.runs.filter(r => chosen.has(r.run));
const isWanted = tag => data.tags[tag].toLowerCase().includes($('filter').value.trim().toLowerCase());

function named(run, text) {
  const made = element('span', text);
  made.style.color = colourOf(run);
  return made;
}

async function load(path) {
  const reply = await fetch(path, {cache: 'no-store'});
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

// --- scalars

class Chart {
  constructor(tag) {
    this.tag = tag;
    this.window = null;  // the steps that are zoomed to
    this.key = '';
    this.isBusy = false;
    this.curves = [];
    this.marks = [];
    this.drawnMarks = [];
    this.element = element('figure', undefined, 'chart');
    this.caption = element('figcaption');
    this.plot = element('div', undefined, 'plot');
    this.plot.setAttribute('role', 'img');
    this.readout = element('p', undefined, 'readout');
    this.element.append(this.caption, this.plot, this.readout);
    this.isVisible = false;
    this.element.chart = this;
    visibility.observe(this.element);
  }
  close() {
    visibility.unobserve(this.element);
    if (this.graph) this.graph.destroy();
    this.element.remove();
  }
  facts() {
    return runsChosen().map(run => [run, (run.scalars || []).find(s => s.tag === this.tag)]).filter(([, s]) => s);
  }
  // Loads what is not drawn yet, if it can be seen.
  async update() {
    this.isToBeRepeated = this.isBusy;
    if (!this.isVisible || this.isBusy || !data) return;
    const facts = this.facts();
    if (facts.length === 0) return;
    const points = Math.min(10000, Math.max(300, Math.round(this.plot.clientWidth * 3)));
    const smoothing = $('smoothing').value;
    let path = 'scalars.json?tag=' + this.tag + '&runs=' + facts.map(([run]) => run.run).join(',') + '&points=' +
      points + '&smoothing=' + smoothing;
    if (this.window) path += '&from=' + Math.floor(this.window[0]) + '&to=' + Math.ceil(this.window[1]);
    const key = JSON.stringify([path, facts.map(([run, s]) => [run.directory, s.added, s.kept, s.last,
      run.restarts.length]),
      $('logscale').checked]);
    if (key === this.key) return;
    this.isBusy = true;
    try {
      this.curves = (await load(path)).curves;
      this.marks = facts.flatMap(([run]) => run.restarts.map(mark => ({run: run.run, ...mark})));
      this.draw();
      this.key = key;
      this.newest = facts.map(([run, s]) => [run.run, s.value, s.last]);
      this.tellNewest();
      const thinned = facts.some(([, s]) => s.thinned) ? ', thinned out' : '';
      this.caption.replaceChildren(data.tags[this.tag], element('small', ' steps ' +
        Math.min(...facts.map(([, s]) => s.first)) + ' to ' + Math.max(...facts.map(([, s]) => s.last)) + thinned));
    } catch (error) {
      this.readout.textContent = error.message;
    }
    this.isBusy = false;
    if (this.isToBeRepeated) this.update();
  }
  // A row for each step that a curve has; a number that is not finite is a gap.
  rows() {
    const smooth = this.curves.some(curve => curve.smooth);
    const lists = this.curves.flatMap(curve => smooth ? [curve, curve.smooth] : [curve]);
    const rows = new Map();
    lists.forEach((list, column) => list.steps.forEach((step, i) => {
      let row = rows.get(step);
      if (!row) rows.set(step, row = [step, ...lists.map(() => null)]);
      row[column + 1] = list.values[i] === null ? NaN : list.values[i];
    }));
    return {smooth, rows: [...rows.values()].sort((a, b) => a[0] - b[0])};
  }
  draw() {
    const {smooth, rows} = this.rows();
    if (rows.length === 0) return;
    const labels = ['step'], strokes = [];
    for (const curve of this.curves) {
      labels.push('raw ' + curve.run);
      strokes.push(smooth ? colourOf(curve.run) + '55' : colourOf(curve.run));
      if (!smooth) continue;
      labels.push('smooth ' + curve.run);
      strokes.push(colourOf(curve.run));
    }
    const options = {
      file: rows, labels, colors: strokes, logscale: $('logscale').checked, dateWindow: this.window,
      gridLineColor: colour('--line'), axisLineColor: colour('--line'),
    };
    if (this.graph && this.graph.getLabels().length === labels.length) return this.graph.updateOptions(options);
    if (this.graph) this.graph.destroy();
    const model = Dygraph.defaultInteractionModel || Dygraph.Interaction.defaultModel;
    this.graph = new Dygraph(this.plot, rows, {
      ...options, strokeWidth: 1.5, connectSeparatedPoints: true, drawPoints: rows.length < 30, pointSize: 2,
      highlightCircleSize: 3, axisLabelFontSize: 11, xRangePad: 4, yRangePad: 8, rightGap: 12, animatedZooms: false,
      digitsAfterDecimal: 6,
      axes: {x: {axisLabelFormatter: x => this.stepText(x)}, y: {axisLabelWidth: 44, axisLabelFormatter: number}},
      underlayCallback: (context, area, graph) => this.drawMarks(context, area, graph),
      zoomCallback: (from, to) => this.zoom(from, to),
      highlightCallback: (event, x, points) => this.tell(x, points),
      unhighlightCallback: () => this.tellNewest(),
      // One finger scrolls the page, two zoom.
      interactionModel: {
        ...model,
        touchstart: (event, graph, context) => event.touches.length > 1 && model.touchstart(event, graph, context),
        touchmove: (event, graph, context) => event.touches.length > 1 && model.touchmove(event, graph, context),
      },
    });
  }
  stepText(x) {
    if (Math.abs(x) >= 1e6) return +(x / 1e6).toPrecision(6) + 'M';
    return Math.abs(x) >= 1e4 ? +(x / 1e3).toPrecision(6) + 'k' : String(+x.toPrecision(9));
  }
  drawMarks(context, area, graph) {
    this.drawnMarks = [];
    const [from, to] = graph.xAxisRange();
    for (const mark of this.marks) {
      if (mark.step < from || mark.step > to) continue;
      const x = Math.round(graph.toDomXCoord(mark.step)) + .5;
      context.save();
      context.strokeStyle = colourOf(mark.run);
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
      context.restore();
      this.drawnMarks.push(mark);
    }
  }
  zoom(from, to) {
    this.window = this.graph.isZoomed('x') ? [from, to] : null;
    this.update();
  }
  // While no pointer is over it. The colours are those of the curves.
  tellNewest() {
    const texts = this.newest.map(([run, value, step]) => [run, data.runs[run].name, number(value), step]);
    this.readout.replaceChildren(...texts.flatMap(([run, name, value]) => [named(run, name + ' '), value + '  ']));
    this.plot.setAttribute('aria-label', data.tags[this.tag] + ': ' + texts.map(([, name, value, step]) =>
      name + ' ' + value + ' at step ' + step).join(', '));
  }
  // What is under the pointer.
  tell(x, points) {
    const nodes = [element('b', 'step ' + x + ' ')];
    for (const point of points) {
      const [kind, run] = point.name.split(' ');
      nodes.push(named(+run, data.runs[+run].name + (kind === 'smooth' ? ' smoothed ' : ' ')),
        number(point.yval) + '  ');
    }
    const [from, to] = this.graph.xAxisRange();
    for (const mark of this.marks) {
      if (Math.abs(mark.step - x) > (to - from) / 60) continue;
      nodes.push(element('span', data.runs[mark.run].name + ' ' + mark.what + ' at step ' + mark.step +
        (mark.why ? ' (' + mark.why + ')' : '') + '  '));
    }
    this.readout.replaceChildren(...nodes);
  }
  // For tests: what the graph was given, and the marks that it drew.
  drawn() {
    const labels = this.graph ? this.graph.getLabels().slice(1) : [];
    const series = labels.map((label, column) => {
      const [kind, run] = label.split(' '), points = [];
      for (let row = 0; row < this.graph.numRows(); ++row) {
        const value = this.graph.getValue(row, column + 1);
        if (value !== null) points.push([this.graph.getValue(row, 0), isNaN(value) ? null : value]);
      }
      return {run: +run, kind, points};
    });
    return {tag: data.tags[this.tag], series, marks: this.drawnMarks.map(m => [m.run, m.step]), window: this.window};
  }
}
const visibility = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const owner = entry.target.chart;
    owner.isVisible = entry.isIntersecting;
    if (owner.isVisible) owner.update();
  }
}, {rootMargin: '200px'});

function tagsOf(kind) {
  const tags = new Set(runsChosen().flatMap(run => (run[kind] || []).map(each => each.tag)));
  return [...tags].filter(isWanted).sort((a, b) => data.tags[a].localeCompare(data.tags[b]));
}
function showScalars() {
  const tags = tagsOf('scalars');
  for (const [tag, chart] of charts) {
    if (tags.includes(tag)) continue;
    chart.close();
    charts.delete(tag);
  }
  for (const tag of tags) if (!charts.has(tag)) charts.set(tag, new Chart(tag));
  showFigures(tags.map(tag => charts.get(tag).element), 'scalar');
  for (const chart of charts.values()) chart.update();
}
function emptyText(what) {
  if (data.runs.length === 0) return 'No training has been found yet; this page looks again every few seconds.';
  if (chosen.size === 0) return 'No run is chosen.';
  return 'The chosen runs have no ' + what + ($('filter').value ? ' whose tag has "' + $('filter').value + '".' : '.');
}

// --- panels: a figure for each tag and run, loaded when it is seen

class Panel {
  constructor(run, tag, fill) {
    this.run = run;
    this.tag = tag;
    this.fill = fill;
    this.added = 0;
    this.element = element('figure');
    this.caption = element('figcaption', data.tags[tag]);
    const name = element('small');
    name.append(named(run.run, ' ' + run.name));
    this.caption.append(name);
    this.body = element('div');
    this.element.append(this.caption, this.body);
    this.element.chart = this;
    this.isVisible = false;
    this.isDone = false;
    visibility.observe(this.element);
  }
  close() {
    visibility.unobserve(this.element);
    this.element.remove();
  }
  // There are so many by now.
  tell(added) {
    if (added !== this.added) this.isDone = false;
    this.added = added;
    this.update();
  }
  async update() {
    if (this.isDone || !this.isVisible) return;
    this.isDone = true;
    try {
      await this.fill(this);
    } catch (error) {
      this.body.replaceChildren(element('p', error.message, 'bad'));
    }
  }
  query() { return '?run=' + this.run.run + '&tag=' + this.tag; }
}
function showPanels(kind, what, fill) {
  const wanted = new Map();
  for (const tag of tagsOf(kind)) {
    for (const run of runsChosen()) {
      const found = (run[kind] || []).find(each => each.tag === tag);
      if (found) wanted.set(run.run + ' ' + tag + ' ' + run.directory, [run, tag, found.added]);
    }
  }
  for (const [key, panel] of panels) {
    if (wanted.has(key)) continue;
    panel.close();
    panels.delete(key);
  }
  for (const [key, [run, tag]] of wanted) if (!panels.has(key)) panels.set(key, new Panel(run, tag, fill));
  showFigures([...wanted.keys()].map(key => panels.get(key).element), what);
  for (const [key, [, , added]] of wanted) panels.get(key).tell(added);
}
// Figures that are there already stay as they are.
function showFigures(wanted, what) {
  let grid = $('content').querySelector('.grid');
  if (!grid) $('content').replaceChildren(grid = element('div', undefined, 'grid'));
  if (wanted.length === 0) return grid.replaceChildren(element('p', emptyText(what), 'dim'));
  const isSame = wanted.length === grid.children.length && wanted.every((each, i) => grid.children[i] === each);
  if (!isSame) grid.replaceChildren(...wanted);
}
// The slider stays where it is, unless it stands at the newest image.
async function fillImages(panel) {
  const images = (await load('images.json' + panel.query())).images;
  const before = panel.slider, asked = before && +before.value < +before.max ? panel.step : null;
  const image = element('img'), slider = panel.slider = element('input'), label = element('p', '', 'dim');
  slider.type = 'range';
  slider.min = 0;
  slider.max = images.length - 1;
  const found = asked === null ? -1 : images.findIndex(each => each.step >= asked);
  slider.value = found < 0 ? images.length - 1 : found;
  slider.setAttribute('aria-label', 'step');
  slider.hidden = images.length < 2;
  const show = () => {
    const each = images[+slider.value];
    panel.step = each.step;
    image.src = 'image' + panel.query() + '&step=' + each.exact_step;
    image.alt = data.tags[panel.tag] + ' at step ' + each.step;
    label.textContent = 'step ' + each.step + ', ' + clock(each.time);
  };
  image.onerror = () => { label.textContent += ': the image cannot be shown'; };
  slider.oninput = show;
  show();
  panel.body.replaceChildren(image, slider, label);
}
async function fillTexts(panel) {
  const all = await load('texts.json' + panel.query());
  const nodes = [];
  for (const text of all.texts) {
    nodes.push(element('p', 'step ' + text.step + ', ' + clock(text.time), 'dim'), element('pre', text.text));
    if (text.bytes > 20000) nodes.push(element('p', 'cut: the text has ' + size(text.bytes), 'bad'));
  }
  if (all.earlier > 0) nodes.push(element('p', all.earlier + ' earlier ones are not shown', 'dim'));
  panel.body.replaceChildren(...nodes);
}
// Each histogram is a ridge, the newest in front.
async function fillHistograms(panel) {
  const all = await load('histograms.json' + panel.query());
  const canvas = element('canvas', undefined, 'ridges'), list = all.histograms;
  panel.body.replaceChildren(canvas, element('p', number(all.low) + ' to ' + number(all.high) + ', steps ' +
    list[0].step + ' to ' + list[list.length - 1].step + ', ' + list.length + ' of them', 'readout'));
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  const most = Math.max(...list.flatMap(h => h.counts)) || 1;
  const ridge = Math.min(height * .45, Math.max(24, height * 2 / list.length));
  list.forEach((histogram, i) => {
    const base = list.length > 1 ? ridge + (height - ridge - 2) * i / (list.length - 1) : height - 2;
    context.beginPath();
    context.moveTo(0, base);
    histogram.counts.forEach((count, bin) => {
      const y = base - ridge * count / most;
      context.lineTo(width * bin / histogram.counts.length, y);
      context.lineTo(width * (bin + 1) / histogram.counts.length, y);
    });
    context.lineTo(width, base);
    context.fillStyle = colour('--panel');
    context.fill();
    context.globalAlpha = list.length > 1 ? .3 + .7 * i / (list.length - 1) : 1;
    context.strokeStyle = colourOf(panel.run.run);
    context.stroke();
    context.globalAlpha = 1;
  });
  panel.drawn = {run: panel.run.run, tag: data.tags[panel.tag], low: all.low, high: all.high,
    histograms: list.map(h => ({step: h.step, num: h.num, counts: h.counts}))};
}

// --- the time line, checkpoints, options

function table(heads, rows) {
  const made = element('table'), head = element('tr');
  for (const name of heads) head.append(element('th', name));
  made.append(head);
  for (const cells of rows) {
    const row = element('tr');
    for (const cell of cells) row.append(cell instanceof Node ? cell : element('td', cell === null ? '' : cell));
    made.append(row);
  }
  const wide = element('div', undefined, 'wide');
  wide.append(made);
  return wide;
}
function heading(run) {
  const made = element('h2'), swatch = element('span', undefined, 'swatch');
  swatch.style.background = colourOf(run.run);
  made.append(swatch, ' ' + run.name);
  return made;
}
function barOf(journal, now) {
  const bar = element('div', undefined, 'bar'), runs = journal.runs;
  const first = runs[0].began, end = Math.max(...runs.map(r => r.end === 'running' ? now : r.until)), all = end - first;
  for (const each of runs) {
    const part = element('span', undefined, each.end === 'running' ? 'running' : each.end === 'ended' ? '' : 'bad');
    const until = each.end === 'running' ? now : each.until;
    part.style.left = 100 * (each.began - first) / (all || 1) + '%';
    part.style.width = 100 * (until - each.began) / (all || 1) + '%';
    part.title = 'run ' + each.run + ', ' + each.end + (each.why ? ': ' + each.why : '');
    bar.append(part);
  }
  return bar;
}
async function timelineOf(run) {
  const all = await load('training.json?run=' + run.run), journal = all.journal, nodes = [heading(run)];
  const rate = all.status.chief.state === 'alive' ? all.status.steps_per_sec : 0;
  const state = element('p', all.status.state + (all.status.step === null ? '' : ', step ' + all.status.step) +
    (rate ? ', ' + number(rate) + ' steps/s' : ''));
  state.className = all.status.problems.length ? 'bad' : 'good';
  nodes.push(state);
  for (const problem of all.status.problems) nodes.push(element('p', problem, 'bad'));
  for (const note of all.status.notes) nodes.push(element('p', note, 'dim'));
  if (!journal || journal.runs.length === 0) return [...nodes, element('p', 'It has no journal.', 'dim')];
  const spent = Object.entries(journal.seconds).filter(([, s]) => s > 0).map(([name, s]) => name + ' ' + duration(s));
  nodes.push(barOf(journal, all.now), element('p', journal.goodput_percent.toFixed(1) + ' % goodput, ' +
    journal.interruptions + ' interruptions: ' + spent.join(', '), 'dim'));
  nodes.push(table(['run', 'began', 'lasted', 'from step', 'to step', 'saves', 'lost steps', 'host', 'end'],
    journal.runs.slice().reverse().map(r => [r.run, clock(r.began), duration((r.end === 'running' ? all.now : r.until) -
      r.began), r.from_step, r.last_step, r.saves, r.lost_steps, r.host,
      element('td', r.end + (r.hangs ? ' (' + r.hangs + ' hangs)' : '') +
        (r.failed_saves ? ' (' + r.failed_saves + ' failed saves)' : '') + (r.why ? ': ' + r.why : ''), 'long')])));
  if ((all.events || []).length > 0) {
    const details = element('details');
    details.append(element('summary', 'What happened in the newest run'), table(['time', 'step', 'what', ''],
      all.events.map(e => [clock(e.time), e.step, e.what, element('td', e.text, 'long')])));
    nodes.push(details);
  }
  return nodes;
}
async function checkpointsOf(run) {
  const all = await load('checkpoints.json?run=' + run.run);
  const nodes = [heading(run)];
  if (all.error) return [...nodes, element('p', all.error, 'bad')];
  if (all.latest_elsewhere) nodes.push(element('p', 'A restart takes ' + all.latest_elsewhere +
    ', which is not in this directory.', 'bad'));
  nodes.push(element('p', all.checkpoints.length + ' checkpoints, ' + size(all.bytes) + '; ' + size(all.free_bytes) +
    ' free', 'dim'));
  if (all.checkpoints.length === 0) return nodes;
  const metrics = all.checkpoints.filter(c => c.metric !== null).map(c => c.metric);
  nodes.push(table(['checkpoint', 'step', 'saved', 'size', ...(metrics.length ? ['metric'] : []), ''],
    all.checkpoints.slice().reverse().map(c => {
      const words = [c.state === 'complete' ? '' : c.state, c.latest ? 'latest' : '', c.pinned ? 'pinned' : ''];
      return [c.path.split('/').pop(), c.step, c.modified_at ? ago(c.modified_at) : '', size(c.bytes),
        ...(metrics.length ? [c.metric === null ? '' : number(c.metric)] : []),
        element('td', words.filter(w => w).join(', '), c.state === 'complete' ? 'good' : 'bad')];
    })));
  return nodes;
}
async function showEach(make) {
  const nodes = [];
  for (const run of runsChosen()) {
    try {
      nodes.push(...await make(run));
    } catch (error) {
      nodes.push(heading(run), element('p', error.message, 'bad'));
    }
  }
  return nodes.length ? nodes : [element('p', emptyText('run'), 'dim')];
}
let showsAllOptions = false;
async function optionNodes() {
  const runs = runsChosen();
  if (runs.length === 0) return [element('p', emptyText('run'), 'dim')];
  const all = await load('options.json?runs=' + runs.map(r => r.run).join(','));
  const label = element('label'), box = element('input');
  box.type = 'checkbox';
  box.checked = showsAllOptions;
  box.onchange = () => { showsAllOptions = box.checked; refresh(); };
  label.append(box, ' also what is the same');
  const rows = all.options.filter(o => showsAllOptions || o.differs || runs.length === 1);
  const source = runs.map((run, i) => run.name + ': ' + (all.runs[i].problem || all.runs[i].source ||
    'nothing is recorded')).join('; ');
  const nodes = [label, element('p', 'What the .meta file of the newest checkpoint records (record_option(), ' +
    'versions, threads, processor, the graph), and the host of the newest start. ' + source, 'dim')];
  const different = all.options.filter(o => o.recorded_differs).length;
  const lacking = all.options.filter(o => o.values.includes(null)).length;
  if (runs.length > 1) nodes.push(element('p', (different === 0 ? 'Nothing that is recorded differs.' : different +
    (different === 1 ? ' option differs.' : ' options differ.')) + (lacking === 0 ? '' : ' ' + lacking +
    (lacking === 1 ? ' is' : ' are') + ' not recorded of each run.')));
  if (rows.length === 0) return nodes;
  rows.sort((a, b) => b.recorded_differs - a.recorded_differs);
  return [...nodes, table(['option', ...runs.map(r => r.name)], rows.map(o => [o.name, ...o.values.map(v =>
    element('td', v === null ? '(not recorded)' : v, v === null ? 'dim' : ''))]))];
}

// --- the page

function showRuns() {
  for (const run of data.runs) {
    if (!seen.has(run.run) && chosen.size < mostChosen) chosen.add(run.run);
    seen.add(run.run);
  }
  for (const run of data.runs) {
    if (!listed.has(run.run)) listed.set(run.run, new ListedRun(run));
    listed.get(run.run).tell(run);
  }
}
class ListedRun {
  constructor(run) {
    const item = element('li'), label = element('label'), swatch = element('span', undefined, 'swatch');
    this.box = element('input');
    this.facts = element('small');
    this.state = element('small');
    this.box.type = 'checkbox';
    this.box.onchange = () => {
      if (this.box.checked) chosen.add(run.run);
      else chosen.delete(run.run);
      chooseRuns();
    };
    swatch.style.background = colourOf(run.run);
    this.name = element('span');
    label.append(this.box, swatch, this.name, this.facts, this.state);
    item.append(label);
    $('runs').append(item);
  }
  tell(run) {
    const step = run.step === undefined ? null : run.step;
    this.name.textContent = run.name;
    this.box.checked = chosen.has(run.run);
    this.facts.className = run.gone ? 'gone' : '';
    this.facts.textContent = run.gone ? 'gone' : !run.read ? 'being read' : step === null ? 'no scalars' :
      'step ' + step + ', ' + ago(run.time);
    // The words of `longhaul status`. The colour tells nothing that they do not.
    const isWrong = run.wrong.length > 0, told = isWrong ? run.wrong : run.notes;
    this.state.hidden = run.state === null;
    this.state.textContent = run.state + (told.length ? (isWrong ? ', wrong: ' : ', ') + told[0] : '') +
      (told.length > 1 ? ' (and ' + (told.length - 1) + ' more)' : '');
    this.state.title = told.join('\n');
    this.state.className = isWrong ? 'state bad' : 'state good';
  }
}
function showNotes() {
  const notes = [...data.notes, ...data.runs.flatMap(run => run.problems.map(p => run.name + ': ' + p))];
  $('notes').hidden = notes.length === 0;
  const items = notes.slice(0, 20).map(note => element('li', note));
  if (notes.length > 20) items.push(element('li', 'and ' + (notes.length - 20) + ' more'));
  if ($('notes').textContent !== items.map(item => item.textContent).join('')) $('notes').replaceChildren(...items);
}
let isSlowBusy = false;
async function showSlow(make) {
  if (isSlowBusy) return;
  isSlowBusy = true;
  const asked = section;
  try {
    const nodes = await make();
    if (section === asked) {
      const open = $('content').querySelector('details[open]') !== null;
      $('content').replaceChildren(...nodes);
      if (open) for (const each of $('content').querySelectorAll('details')) each.open = true;
    }
  } catch (error) {
    if (section === asked) $('content').replaceChildren(element('p', error.message, 'bad'));
  }
  isSlowBusy = false;
}
function refresh() {
  if (!data) return;
  if (section === 'scalars') return showScalars();
  if (section === 'images') return showPanels('images', 'image', fillImages);
  if (section === 'histograms') return showPanels('histograms', 'histogram', fillHistograms);
  if (section === 'texts') return showPanels('texts', 'text', fillTexts);
  if (section === 'timeline') return showSlow(() => showEach(timelineOf));
  if (section === 'checkpoints') return showSlow(() => showEach(checkpointsOf));
  return showSlow(optionNodes);
}
function choose() {
  const asked = location.hash.slice(1);
  section = sections.includes(asked) ? asked : 'scalars';
  for (const link of $('sections').children) {
    if (link.hash === '#' + section) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  for (const chart of charts.values()) chart.close();
  charts.clear();
  for (const panel of panels.values()) panel.close();
  panels.clear();
  $('content').replaceChildren();
  refresh();
}
// What runs have is listed of the chosen ones only; at first these are the first ones.
const runsAsked = () => data ? [...chosen].join(',') : [...Array(mostChosen).keys()].join(',');
let looks = 0, lost = 0, current = 0, next = 0;
async function look() {
  clearTimeout(next);
  const mine = ++current;
  if (!document.hidden) {
    try {
      const got = await load('runs.json?runs=' + runsAsked());
      if (mine !== current) return;  // the choice has changed meanwhile
      data = got;
      lost = 0;
      $('state').className = '';
      const wrong = data.runs.filter(run => run.wrong.length > 0).length;
      $('state').textContent = data.runs.length + (data.runs.length === 1 ? ' run' : ' runs') +
        (wrong ? ', something is wrong with ' + wrong : '') + (data.read ? '' : '; files are being read') + '; ' +
        new Date(data.now * 1000).toLocaleTimeString();
      $('where').textContent = data.directories.join(', ');
      document.title = 'Board of ' + data.directories.join(', ');
      showRuns();
      showNotes();
      if (['scalars', 'images', 'histograms', 'texts'].includes(section) || looks++ % 5 === 0) refresh();
    } catch (error) {
      if (mine !== current) return;
      lost += 1;
      $('state').className = 'bad';
      $('state').textContent = 'The board does not answer: it has ended, or the line is cut. ' + error.message;
    }
  }
  next = setTimeout(look, lost > 3 ? 20000 : 2000);
}
function chooseRuns() {
  showRuns();
  refresh();
  look();
}
const isDark = matchMedia('(prefers-color-scheme: dark)');
isDark.addEventListener('change', () => {
  for (const chart of charts.values()) if (chart.graph) chart.draw();
  for (const panel of panels.values()) panel.isDone = false;
  refresh();
});
let pending = 0;
function later() {
  clearTimeout(pending);
  pending = setTimeout(refresh, 150);
}
// The library's legend would insert names as HTML; this page has its own.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);
$('smoothing').oninput = () => { $('smoothing-value').textContent = $('smoothing').value; later(); };
$('filter').oninput = later;
$('logscale').onchange = refresh;
$('all').onclick = () => { for (const run of data ? data.runs : []) chosen.add(run.run); chooseRuns(); };
$('none').onclick = () => { chosen.clear(); chooseRuns(); };
window.addEventListener('hashchange', choose);
if (matchMedia('(max-width: 50rem)').matches) $('choice').open = false;
// For tests, and for whoever asks in the console of the browser.
window.board = {
  data: () => data,
  drawn: () => [...charts.values()].filter(chart => chart.graph).map(chart => chart.drawn()),
  chart: tag => [...charts.values()].find(chart => data.tags[chart.tag] === tag),
  histograms: () => [...panels.values()].map(panel => panel.drawn).filter(drawn => drawn),
};
choose();
look();
