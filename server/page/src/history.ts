// The queries that were run here, newest first, in the browser's storage.
import { button, closePopover, fill, h, popover } from "./dom";

const KEY = "varve-history";
const MAX = 200;

export function pastQueries(): string[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(list) ? list.filter((each): each is string => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export function remember(expr: string): void {
  const list = [expr, ...pastQueries().filter((each) => each !== expr)].slice(0, MAX);
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
  } catch {
    // the storage is full or not allowed: there is no history then
  }
}

export function historyButton(choose: (expr: string) => void): HTMLElement {
  const content = (): HTMLElement => {
    const list = h("div", { class: "menu scroll", role: "list" });
    const show = (filter: string): void => {
      const found = pastQueries().filter((expr) => expr.toLowerCase().includes(filter.toLowerCase()));
      const items = found.map((expr) =>
        h("button", { type: "button", class: "menu-item mono", on: { click: () => pick(expr) } }, expr),
      );
      fill(list, items.length > 0 ? items : h("p", { class: "quiet" }, filter ? "No query in the history has that." : "Queries that you run are kept here, in this browser."));
    };
    const pick = (expr: string): void => {
      closePopover(list);
      choose(expr);
    };
    const search = h("input", { type: "search", class: "input", placeholder: "Search the history", "aria-label": "Search the history" });
    search.addEventListener("input", () => show(search.value));
    show("");
    return h("div", { class: "stack" }, search, list);
  };
  return popover(button({ icon: "history", title: "Query history", click: () => undefined }), content, "right");
}
