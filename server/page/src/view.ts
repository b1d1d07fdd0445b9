// What the four views share: their shape, cards and bars, what they say when the server lacks a call, refreshing.
import { ApiError } from "./api";
import { h, type Child } from "./dom";

export interface Mounted {
  readonly dom: HTMLElement;
  destroy(): void;
  focus?(): void;
  key?(event: KeyboardEvent): boolean; // true: it was for this view
}

export function card(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "card block", "aria-label": title }, h("h2", {}, title), ...children);
}

export function figure(label: string, value: Child, note?: Child): HTMLElement {
  return h("div", { class: "figure" }, h("span", { class: "figure-label" }, label), h("b", { class: "figure-value" }, value), note !== undefined && h("span", { class: "quiet" }, note));
}

// Instead of what a call would have shown.
export function excuse(error: unknown, what: string): HTMLElement {
  if (error instanceof ApiError && error.missing) {
    return h("div", { class: "nothing" }, h("b", {}, `No ${what} here`), h("p", { class: "quiet" }, "This server does not offer the call that tells it (404). A newer Varve does."));
  }
  const message = error instanceof Error ? error.message : String(error);
  return h("div", { class: "failure", role: "alert" }, h("p", {}, h("b", {}, what), " ", message));
}

export interface BarRow {
  name: string;
  value: number;
  text: string;
  title?: string;
  click?: () => void;
}

// Names with bars in proportion to the greatest.
export function bars(rows: BarRow[], nothing: string): HTMLElement {
  if (rows.length === 0) return h("p", { class: "quiet pad" }, nothing);
  const most = Math.max(...rows.map((row) => row.value), 1e-300);
  const item = (row: BarRow): HTMLElement => {
    const inside = [h("span", { class: "bar-fill", style: { width: `${Math.max(0.5, (100 * row.value) / most)}%` } }), h("span", { class: "bar-name mono" }, row.name || "(empty)"), h("span", { class: "bar-value" }, row.text)];
    return h("li", {}, row.click ? h("button", { type: "button", class: "bar", title: row.title ?? row.name, on: { click: row.click } }, inside) : h("div", { class: "bar", title: row.title ?? row.name }, inside));
  };
  return h("ul", { class: "bars" }, rows.map(item));
}

// Calls fn now and every ms while the page is visible, never twice at a time.
export function repeat(ms: number, fn: () => Promise<void>): () => void {
  let busy = false;
  const tick = (): void => {
    if (busy || document.hidden) return;
    busy = true;
    void fn().finally(() => (busy = false));
  };
  tick();
  const timer = window.setInterval(tick, ms);
  return () => clearInterval(timer);
}
