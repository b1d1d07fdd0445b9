// The time range that all queries share: presets, any length, absolute ends, steps back and forth, zone, refresh.
import { button, closePopover, fill, h, icon, popover } from "./dom";
import { describeRange, formatDuration, formatTime, isUtc, parseDuration, parseTime, setUtc, spanOf, spelled, type Range } from "./time";

const MINUTE = 60e3, HOUR = 3600e3, DAY = 24 * HOUR;
const PRESETS = [5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];
const REFRESHES = [0, 5e3, 10e3, 30e3, MINUTE, 5 * MINUTE];

export interface RangeHost {
  range: () => Range;
  setRange: (range: Range) => void;
  refresh: () => number;
  setRefresh: (ms: number) => void;
  step: () => number | null;
  setStep: (ms: number | null) => void;
  redraw: () => void; // the zone changed
  run: () => void;
}

export class RangeBar {
  readonly dom: HTMLElement;
  private readonly label = h("span", { class: "range-label" });
  private readonly refreshLabel = h("span");

  constructor(private readonly host: RangeHost) {
    const trigger = h("button", { type: "button", class: "button range", title: "Time range" }, icon("clock"), this.label);
    const every = h("button", { type: "button", class: "button", title: "Refresh" }, this.refreshLabel);
    this.dom = h(
      "div",
      { class: "range-bar", role: "group", "aria-label": "Time range" },
      h(
        "div",
        { class: "joined" },
        button({ icon: "left", title: "Earlier", click: () => this.shift(-0.5) }),
        popover(trigger, () => this.content()),
        button({ icon: "right", title: "Later", click: () => this.shift(0.5) }),
      ),
      h("div", { class: "joined" }, button({ icon: "refresh", title: "Run all queries", click: () => host.run() }), popover(every, () => this.refreshContent(), "right")),
    );
    this.reflect();
  }

  reflect(): void {
    this.label.textContent = describeRange(this.host.range()) + (isUtc() && this.host.range().end !== null ? " UTC" : "");
    const ms = this.host.refresh();
    this.refreshLabel.textContent = ms === 0 ? "Off" : formatDuration(ms);
  }

  shift(by: number): void {
    const range = this.host.range();
    const end = spanOf(range).to + by * range.length;
    this.host.setRange({ length: range.length, end: end >= Date.now() ? null : Math.round(end / 1000) * 1000 });
  }

  scale(by: number): void {
    const range = this.host.range();
    const length = Math.max(10e3, Math.min(50 * 365 * DAY, Math.round((range.length * by) / 1000) * 1000));
    const middle = spanOf(range).to - range.length / 2 + length / 2;
    const end = range.end === null || middle >= Date.now() ? null : Math.round(middle / 1000) * 1000;
    this.host.setRange({ length, end });
  }

  private content(): HTMLElement {
    const range = this.host.range();
    const box = h("div", { class: "range-picker" });
    const done = (next: Range): void => {
      closePopover(box);
      this.host.setRange(next);
    };
    const presets = PRESETS.map((length) =>
      h("button", { type: "button", class: "menu-item", "aria-pressed": String(range.end === null && range.length === length), on: { click: () => done({ length, end: null }) } }, `Last ${spelled(length)}`),
    );
    fill(box, h("div", { class: "menu" }, presets), h("div", { class: "stack" }, this.relativeForm(done), this.absoluteForm(done), this.stepForm(), this.zoneSwitch(box)));
    return box;
  }

  private relativeForm(done: (range: Range) => void): HTMLElement {
    const input = h("input", { class: "input", value: formatDuration(this.host.range().length), "aria-label": "Length of the range", placeholder: "90m" });
    const submit = (event: Event): void => {
      event.preventDefault();
      const length = parseDuration(input.value);
      input.setAttribute("aria-invalid", String(length === null));
      if (length !== null) done({ length, end: null });
    };
    return h("form", { class: "field", on: { submit } }, h("label", {}, "Last"), input, h("button", { class: "button" }, "Apply"));
  }

  private absoluteForm(done: (range: Range) => void): HTMLElement {
    const { from, to } = spanOf(this.host.range());
    const time = (label: string, ms: number): HTMLInputElement => h("input", { class: "input mono", value: formatTime(ms), "aria-label": label, placeholder: "2026-11-30 13:41" });
    const first = time("From", from), last = time("To", to);
    const problem = h("p", { class: "problem", role: "alert" });
    const submit = (event: Event): void => {
      event.preventDefault();
      const a = parseTime(first.value), b = parseTime(last.value);
      first.setAttribute("aria-invalid", String(a === null));
      last.setAttribute("aria-invalid", String(b === null));
      if (a === null || b === null) problem.textContent = "A time looks like 2026-11-30 13:41:05.";
      else if (b <= a) problem.textContent = "The end must be after the beginning.";
      else done({ length: b - a, end: b });
    };
    return h("form", { class: "absolute", on: { submit } }, h("div", { class: "field" }, h("label", {}, "From"), first), h("div", { class: "field" }, h("label", {}, "To"), last, h("button", { class: "button" }, "Apply")), problem);
  }

  private stepForm(): HTMLElement {
    const step = this.host.step();
    const input = h("input", { class: "input", value: step === null ? "" : formatDuration(step), placeholder: "auto", "aria-label": "Step between points" });
    const submit = (event: Event): void => {
      event.preventDefault();
      const ms = input.value.trim() === "" ? null : parseDuration(input.value);
      const bad = ms === null && input.value.trim() !== "";
      input.setAttribute("aria-invalid", String(bad));
      if (bad) return;
      closePopover(input);
      this.host.setStep(ms);
    };
    return h("form", { class: "field", on: { submit } }, h("label", {}, "Step"), input, h("button", { class: "button" }, "Apply"));
  }

  private zoneSwitch(box: HTMLElement): HTMLElement {
    const set = (utc: boolean): void => {
      setUtc(utc);
      closePopover(box);
      this.reflect();
      this.host.redraw();
    };
    const choice = (text: string, utc: boolean): HTMLElement => button({ text, pressed: isUtc() === utc, click: () => set(utc) });
    return h("div", { class: "field" }, h("span", { class: "label" }, "Zone"), h("div", { class: "joined" }, choice("Local", false), choice("UTC", true)));
  }

  private refreshContent(): HTMLElement {
    const box = h("div", { class: "menu" });
    const pick = (ms: number): void => {
      closePopover(box);
      this.host.setRefresh(ms);
    };
    fill(box, REFRESHES.map((ms) => h("button", { type: "button", class: "menu-item", "aria-pressed": String(ms === this.host.refresh()), on: { click: () => pick(ms) } }, ms === 0 ? "Off" : `Every ${spelled(ms)}`)));
    return box;
  }
}
