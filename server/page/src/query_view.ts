// The first view: queries below each other, over one range.
import { announce, button, fill, h, svg } from "./dom";
import { Panel, type PanelHost } from "./panel";
import { RangeBar } from "./rangebar";
import { emptyPanel, save, state } from "./state";
import { spanOf, type Range, type Span } from "./time";
import type { Mounted } from "./view";

const EXAMPLES: [string, string][] = [
  ["up", "which targets answer"],
  ["sum(rate(varve_http_requests_total[5m])) by (code)", "requests a second, by status"],
  ["topk(10, count by (__name__) ({__name__!=\"\"}))", "the ten metrics with most series"],
  ["process_resident_memory_bytes", "memory of each process"],
];

// Strata: what an empty page shows.
function strata(): SVGElement {
  const line = (y: number, wave: number, name: string): SVGElement => svg("path", { d: `M0 ${y}c60 ${-wave} 120 ${wave} 200 0s140 ${-wave} 200 0 140 ${wave} 200 0`, class: `stratum ${name}` });
  return svg("svg", { class: "strata", viewBox: "0 0 600 84", preserveAspectRatio: "none", "aria-hidden": "true" }, line(12, 14, "s1"), line(26, 12, "s2"), line(38, 11, "s3"), line(48, 9, "s4"), line(57, 8, "s5"), line(65, 6, "s6"), line(72, 5, "s7"), line(78, 3, "s8"));
}

export class QueryView implements Mounted {
  readonly dom: HTMLElement;
  private panels: Panel[] = [];
  private readonly list = h("div", { class: "panels" });
  private readonly welcome = h("div");
  private readonly bar: RangeBar;
  private timer = 0;

  constructor() {
    this.bar = new RangeBar({
      range: () => state.range,
      setRange: (range) => this.setRange(range),
      refresh: () => state.refresh,
      setRefresh: (ms) => this.setRefresh(ms),
      step: () => state.step,
      setStep: (ms) => {
        state.step = ms;
        save("push");
        this.run();
      },
      redraw: () => this.run(),
      run: () => this.run(),
    });
    const share = button({ icon: "link", text: "Copy link", class: "button", title: "Copy a link to these queries", click: () => void this.share(share) });
    this.dom = h(
      "div",
      { class: "query-view" },
      h("div", { class: "toolbar" }, this.bar.dom, h("span", { class: "grow" }), share),
      this.list,
      h("div", { class: "add-row" }, button({ icon: "plus", text: "Add query", class: "button add", title: "Add a query", click: () => this.add() })),
      this.welcome,
    );
    state.panels.forEach((panel) => this.attach(panel));
    this.reflect();
    this.run();
    this.schedule();
    if (this.panels.length === 1 && state.panels[0]!.expr === "") queueMicrotask(() => this.focus());
  }

  focus(): void {
    this.panels[0]?.focus();
  }

  // Keys that work anywhere on this view.
  key(event: KeyboardEvent): boolean {
    const actions: Record<string, () => void> = { r: () => this.run(), "[": () => this.bar.shift(-0.5), "]": () => this.bar.shift(0.5), "-": () => this.bar.scale(2), "+": () => this.bar.scale(0.5), n: () => this.add() };
    const action = actions[event.key];
    action?.();
    return action !== undefined;
  }

  private attach(panel: (typeof state.panels)[number], at = this.panels.length): Panel {
    const host: PanelHost = {
      span: () => spanOf(state.range),
      step: () => state.step,
      changed: (how) => {
        save(how);
        this.showWelcome();
      },
      zoom: (span) => this.zoom(span),
      move: (by) => this.bar.shift(by),
      scale: (by) => this.bar.scale(by),
      reorder: (which, by) => this.reorder(which, by),
      remove: (which) => this.remove(which),
      letter: (which) => String.fromCharCode(65 + (this.panels.indexOf(which) % 26)),
    };
    const made = new Panel(panel, host);
    this.panels.splice(at, 0, made);
    this.list.insertBefore(made.dom, this.list.children[at] ?? null);
    return made;
  }

  private reflect(): void {
    this.bar.reflect();
    for (const panel of this.panels) panel.reflect();
    this.list.classList.toggle("single", this.panels.length === 1);
    this.showWelcome();
  }

  private showWelcome(): void {
    const blank = state.panels.every((panel) => panel.expr === "");
    if (blank === this.welcome.childElementCount > 0) return;
    const example = ([expr, what]: [string, string]): HTMLElement =>
      h("button", { type: "button", class: "example", on: { click: () => this.panels[0]!.setText(expr, true) } }, h("code", {}, expr), h("span", { class: "quiet" }, what));
    fill(this.welcome, blank && h("div", { class: "welcome" }, strata(), h("p", { class: "quiet" }, "Something to begin with:"), EXAMPLES.map(example)));
  }

  private add(): void {
    const panel = emptyPanel();
    state.panels.push(panel);
    const made = this.attach(panel);
    this.reflect();
    save("push");
    made.focus();
  }

  private remove(panel: Panel): void {
    const at = this.panels.indexOf(panel);
    state.panels.splice(at, 1);
    this.panels.splice(at, 1);
    panel.dom.remove();
    panel.destroy();
    if (this.panels.length === 0) {
      state.panels.push(emptyPanel());
      this.attach(state.panels[0]!);
    }
    this.reflect();
    save("push");
    this.panels[Math.min(at, this.panels.length - 1)]!.focus();
  }

  private reorder(panel: Panel, by: number): void {
    const at = this.panels.indexOf(panel), to = at + by;
    if (to < 0 || to >= this.panels.length) return;
    const focused = document.activeElement;
    this.panels.splice(to, 0, ...this.panels.splice(at, 1));
    state.panels.splice(to, 0, ...state.panels.splice(at, 1));
    this.list.insertBefore(panel.dom, this.list.children[by > 0 ? to + 1 : to] ?? null);
    if (focused instanceof HTMLElement) focused.focus();
    this.reflect();
    save("push");
    announce(`moved to ${String.fromCharCode(65 + to)}`);
  }

  private zoom(span: Span): void {
    const unit = span.to - span.from > 60e3 ? 1000 : 1;
    const from = Math.round(span.from / unit) * unit, to = Math.round(span.to / unit) * unit;
    if (to - from >= 1000) this.setRange({ length: to - from, end: Math.ceil(to / 1000) * 1000 });
  }

  private setRange(range: Range): void {
    state.range = range;
    save("push");
    this.bar.reflect();
    announce(this.bar.dom.querySelector(".range-label")?.textContent ?? "");
    this.run();
  }

  private setRefresh(ms: number): void {
    state.refresh = ms;
    save("replace");
    this.bar.reflect();
    this.schedule();
  }

  private schedule(): void {
    clearInterval(this.timer);
    if (state.refresh > 0) this.timer = window.setInterval(() => document.hidden || this.run(true), state.refresh);
  }

  private run(quiet = false): void {
    for (const panel of this.panels) panel.run(quiet);
  }

  private async share(trigger: HTMLButtonElement): Promise<void> {
    const label = trigger.querySelector("span")!;
    save("replace");
    try {
      await navigator.clipboard.writeText(location.href);
      label.textContent = "Copied";
    } catch {
      label.textContent = "It is in the address bar"; // no clipboard without TLS
    }
    announce(label.textContent);
    setTimeout(() => (label.textContent = "Copy link"), 1600);
  }

  destroy(): void {
    clearInterval(this.timer);
    for (const panel of this.panels) panel.destroy();
  }
}
