// The graph of a range query: uPlot on a common grid of times, with drag to zoom, keys, and a readout.
import uPlot from "uplot";
import type { Series } from "./api";
import { announce, h } from "./dom";
import { short } from "./format";
import { color, onTheme, seriesColor, seriesVar } from "./theme";
import { formatTime, isUtc, partsOf, type Span } from "./time";

export const DRAWN_MAX = 500;

export interface Line {
  name: string;
  slot: number; // of the palette
  shown: boolean;
  values: (number | null)[];
}

// Every series on the grid of the query; where it has no sample there is a gap.
export function gridOf(span: Span, step: number): number[] {
  const times: number[] = [];
  for (let t = span.from; t <= span.to; t += step) times.push(t / 1000);
  return times;
}

export function valuesOn(times: number[], step: number, series: Series): (number | null)[] {
  const out: (number | null)[] = new Array<number | null>(times.length).fill(null);
  const first = times[0] ?? 0;
  for (const [t, text] of series.values ?? []) {
    const i = Math.round(((t - first) * 1000) / step);
    const v = Number(text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : text);
    if (i >= 0 && i < out.length) out[i] = Number.isFinite(v) ? v : null;
  }
  return out;
}

// Sums up to each line, for stacking; what is not shown does not count.
function stacked(lines: Line[]): (number | null)[][] {
  const sum = new Array<number>(lines[0]?.values.length ?? 0).fill(0);
  return lines.map((line) => (line.shown ? line.values.map((v, i) => (v === null ? sum[i]! : (sum[i] = sum[i]! + v))) : line.values.map(() => null)));
}

const two = (n: number): string => String(n).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// Short where the neighbour says the rest: the date only where it changes.
function timeLabels(splits: number[], increment: number): string[] {
  let lastDay = "";
  return splits.map((s) => {
    const p = partsOf(s * 1000);
    const day = `${p.day} ${MONTHS[p.month - 1]}`;
    const time = `${two(p.hour)}:${two(p.minute)}` + (increment < 60 ? `:${two(p.second)}` : "");
    if (increment >= 86400) return increment >= 86400 * 28 ? `${MONTHS[p.month - 1]} ${p.year}` : day;
    const text = day !== lastDay ? `${time}\n${day}` : time;
    lastDay = day;
    return text;
  });
}

export interface ChartOptions {
  zoom: (span: Span) => void; // the user chose this part
  move: (by: number) => void; // in lengths of the range
  scale: (by: number) => void; // the range's length times this
  highlight: (index: number | null) => void;
}

export class Chart {
  readonly dom: HTMLElement;
  private plot: uPlot | null = null;
  private readonly readout = h("div", { class: "readout", hidden: true });
  private readonly canvas = h("div", { class: "plot" });
  private times: number[] = [];
  private lines: Line[] = [];
  private span: Span = { from: 0, to: 1 };
  private stack = false;
  private readonly resize: ResizeObserver;
  private readonly forget: () => void;

  constructor(private readonly options: ChartOptions) {
    this.dom = h("div", { class: "chart", tabindex: 0, role: "group", "aria-label": "Graph. Arrow keys move the crosshair, shift and arrow keys the range, plus and minus zoom." }, this.canvas, this.readout);
    this.dom.addEventListener("keydown", (event) => this.key(event));
    this.dom.addEventListener("blur", () => this.plot?.setCursor({ left: -10, top: -10 }));
    this.resize = new ResizeObserver(() => {
      if (this.plot && this.canvas.clientWidth > 0) this.plot.setSize({ width: this.canvas.clientWidth, height: this.height() });
    });
    this.resize.observe(this.canvas);
    this.forget = onTheme(() => this.draw());
  }

  private height(): number {
    return this.canvas.clientWidth < 560 ? 220 : 300;
  }

  show(span: Span, times: number[], lines: Line[], stack: boolean): void {
    this.span = span;
    this.times = times;
    this.lines = lines;
    this.stack = stack;
    this.draw();
  }

  // Which lines are shown changed.
  redraw(): void {
    this.draw();
  }

  focusLine(index: number | null): void {
    this.plot?.setSeries(index === null ? null : index + 1, { focus: true }, false);
  }

  private data(): uPlot.AlignedData {
    const rows = this.stack ? stacked(this.lines) : this.lines.map((line) => line.values);
    return [this.times, ...rows] as uPlot.AlignedData;
  }

  private draw(): void {
    this.plot?.destroy();
    this.plot = null;
    this.readout.hidden = true;
    if (this.times.length === 0) return;
    this.plot = new uPlot(this.plotOptions(), this.data(), this.canvas);
  }

  private plotOptions(): uPlot.Options {
    const ink = color("muted"), grid = { stroke: color("grid"), width: 1 }, font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const axis: uPlot.Axis = { stroke: ink, font, grid, ticks: { ...grid, size: 4 } };
    const single = this.lines.filter((line) => line.shown).length === 1;
    return {
      width: Math.max(this.canvas.clientWidth, 200),
      height: this.height(),
      legend: { show: false },
      padding: [10, 12, 0, 0],
      focus: { alpha: 0.2 },
      ...(isUtc() ? { tzDate: (s: number) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC") } : {}),
      cursor: {
        sync: { key: "varve", setSeries: false },
        drag: { x: true, y: false, setScale: false },
        focus: { prox: 24 },
        points: { size: 7 },
      },
      scales: { x: { time: true, range: () => [this.span.from / 1000, this.span.to / 1000] }, y: { range: (_u, min, max) => this.yRange(min, max) } },
      axes: [
        { ...axis, space: 70, size: 40, values: (_u, splits, _i, _space, increment) => timeLabels(splits, increment) },
        { ...axis, size: (_u, values) => Math.max(38, 14 + 6.6 * Math.max(0, ...(values ?? []).map((v) => v.length))), values: (_u, splits) => splits.map((v) => (v === null ? "" : short(v, 6))) },
      ],
      series: [{}, ...this.lines.map((line) => this.seriesOptions(line, single))],
      ...(this.stack ? { bands: this.bands() } : {}),
      hooks: {
        setSelect: [(u) => this.selected(u)],
        setCursor: [(u) => this.read(u)],
        setSeries: [(_u, index) => this.options.highlight(index === null || index < 1 ? null : index - 1)],
      },
    };
  }

  private seriesOptions(line: Line, single: boolean): uPlot.Series {
    const stroke = seriesColor(line.slot);
    const fill = this.stack ? { fill: fade(stroke, 0.35) } : single ? { fill: fade(stroke, 0.09) } : {};
    return { label: line.name, stroke, width: 1.6, show: line.shown, spanGaps: false, points: { size: 5, fill: stroke }, ...fill };
  }

  private bands(): uPlot.Band[] {
    const shown = this.lines.map((line, i) => (line.shown ? i + 1 : 0)).filter((i) => i > 0);
    return shown.slice(1).map((upper, i): uPlot.Band => ({ series: [upper, shown[i]!] }));
  }

  // A flat line lies in the middle; zero is in view when it is near.
  private yRange(min: number | null, max: number | null): [number, number] {
    if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
    if (min === max) {
      const around = Math.abs(min) || 1;
      return min === 0 ? [0, 1] : min > 0 ? [0, min + around * 0.5] : [min - around * 0.5, 0];
    }
    const pad = (max - min) * 0.06;
    const low = min >= 0 && (this.stack || min <= (max - min) * 0.5) ? 0 : min - pad;
    const high = max <= 0 && -max <= (max - min) * 0.5 ? 0 : max + pad;
    return [low, high];
  }

  private selected(u: uPlot): void {
    if (u.select.width < 4) return;
    const from = u.posToVal(u.select.left, "x") * 1000;
    const to = u.posToVal(u.select.left + u.select.width, "x") * 1000;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.options.zoom({ from, to });
  }

  // What lies at the crosshair: the nearest lines by name and value.
  private read(u: uPlot): void {
    const i = u.cursor.idx;
    const left = u.cursor.left ?? -1, top = u.cursor.top ?? -1;
    if (i === null || i === undefined || left < 0) {
      this.readout.hidden = true;
      return;
    }
    const rows = this.nearest(u, i, top);
    const time = formatTime(this.times[i]! * 1000);
    this.readout.replaceChildren(
      h("div", { class: "readout-time" }, time),
      ...rows.map(({ line, near }) => h("div", { class: near ? "readout-row near" : "readout-row" }, h("i", { class: "swatch", style: { "--swatch": seriesVar(line.slot) } }), h("span", {}, line.name), h("b", {}, short(line.values[i]!, 6)))),
    );
    if (rows.length === 0) this.readout.append(h("div", { class: "quiet" }, "no samples here"));
    this.readout.hidden = false;
    const box = u.over.getBoundingClientRect(), own = this.canvas.getBoundingClientRect();
    const x = box.left - own.left + left;
    const flip = x + this.readout.offsetWidth + 24 > own.width;
    this.readout.style.left = `${Math.max(0, flip ? x - this.readout.offsetWidth - 14 : x + 14)}px`;
    this.readout.style.top = `${Math.max(4, Math.min(top, box.height - this.readout.offsetHeight) + box.top - own.top)}px`;
  }

  private nearest(u: uPlot, i: number, top: number): { line: Line; near: boolean }[] {
    const at = this.lines.flatMap((line, k) => {
      const v = (u.data[k + 1] as (number | null)[])[i];
      return line.shown && v !== null && v !== undefined && line.values[i] !== null ? [{ line, far: Math.abs(u.valToPos(v, "y") - top), y: v }] : [];
    });
    const closest = at.sort((a, b) => a.far - b.far).slice(0, 7);
    const nearest = closest[0];
    return closest.sort((a, b) => b.y - a.y).map((each) => ({ line: each.line, near: each === nearest && each.far < 24 }));
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.dom || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => (event.shiftKey ? this.options.move(-0.5) : this.crosshair(-1)),
      ArrowRight: () => (event.shiftKey ? this.options.move(0.5) : this.crosshair(1)),
      Home: () => this.crosshair(-Infinity),
      End: () => this.crosshair(Infinity),
      "+": () => this.options.scale(0.5),
      "=": () => this.options.scale(0.5),
      "-": () => this.options.scale(2),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  private crosshair(by: number): void {
    const u = this.plot;
    if (!u) return;
    const last = this.times.length - 1;
    const now = u.cursor.left !== undefined && u.cursor.left >= 0 ? (u.cursor.idx ?? last) : by > 0 ? -1 : last + 1;
    const i = Math.max(0, Math.min(last, now + by));
    const line = this.lines.find((each) => each.shown && each.values[i] !== null);
    const y = line ? (u.data[this.lines.indexOf(line) + 1] as (number | null)[])[i] : null;
    u.setCursor({ left: u.valToPos(this.times[i]!, "x"), top: y === null || y === undefined ? 10 : u.valToPos(y, "y") });
    announce(`${formatTime(this.times[i]! * 1000)}: ${line ? `${line.name} ${short(line.values[i]!, 6)}` : "no samples"}`);
  }

  destroy(): void {
    this.resize.disconnect();
    this.forget();
    this.plot?.destroy();
  }
}

function fade(rgb: string, alpha: number): string {
  return rgb.replace(/^rgb\(([^)]*)\)$/, `rgba($1, ${alpha})`);
}
