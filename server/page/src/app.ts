// The page: header, views, keys.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { ActivityView } from "./activity_view";
import { get } from "./api";
import { button, fill, h, svg } from "./dom";
import { ExploreView } from "./explore_view";
import { go, onNavigate } from "./nav";
import { QueryView } from "./query_view";
import { restore, state, type View } from "./state";
import { StorageView } from "./storage_view";
import { initTheme, themeButton } from "./theme";
import type { Mounted } from "./view";

const TITLES: Record<View, string> = { query: "Query", explore: "Metrics", activity: "Activity", storage: "Storage" };
const MAKERS: Record<View, () => Mounted> = { query: () => new QueryView(), explore: () => new ExploreView(), activity: () => new ActivityView(), storage: () => new StorageView() };
const KEYS: [string, string][] = [
  ["g then q, m, a, s", "go to Query, Metrics, Activity, Storage"],
  ["/", "into the editor or the search"],
  ["Enter", "run the query (in the editor)"],
  ["Shift Enter", "a new line (in the editor)"],
  ["Alt ↑, Alt ↓", "through the history (in the editor)"],
  ["Escape", "out of the editor"],
  ["r", "run all queries"],
  ["n", "another query"],
  ["[ and ]", "earlier and later"],
  ["+ and −", "a shorter and a longer range"],
  ["← →", "move the crosshair (in a graph)"],
  ["Shift ← →", "earlier and later (in a graph)"],
  ["?", "this list"],
];

let mounted: Mounted | null = null;
const main = h("main", { id: "main", tabindex: -1 });
const links = new Map<View, HTMLAnchorElement>();

function show(): void {
  mounted?.destroy();
  for (const [view, link] of links) {
    if (view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = state.view === "query" ? "Varve" : `${TITLES[state.view]} · Varve`;
  mounted = MAKERS[state.view]();
  fill(main, mounted.dom);
}

function navLink(view: View): HTMLAnchorElement {
  const link = h("a", { href: view === "query" ? "?" : `?view=${view}`, class: "nav-link" }, TITLES[view]);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(view);
  });
  links.set(view, link);
  return link;
}

function logo(): SVGElement {
  const line = (y: number, wave: number, i: number): SVGElement => svg("path", { d: `M2 ${y}c5 ${-wave} 8 ${wave} 13 0s8 ${-wave} 13 0`, class: `logo-line l${i}` });
  return svg("svg", { class: "logo", viewBox: "0 0 30 30", "aria-hidden": "true" }, line(7, 3, 1), line(13, 2.4, 2), line(18.5, 1.8, 3), line(23.5, 1.2, 4));
}

const help = h("dialog", { class: "help", "aria-label": "Keys" });

function showHelp(): void {
  fill(help, h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([keys, what]) => h("div", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)))), h("div", { class: "help-foot" }, button({ text: "Close", class: "button", click: () => help.close() }), h("a", { class: "link", href: document.querySelector<HTMLLinkElement>("link[rel=license]")?.href ?? "", target: "_blank", rel: "noreferrer" }, "Licences")));
  help.showModal();
}

let awaitingView = 0; // when g was pressed

function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function key(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || help.open) return;
  const views: Record<string, View> = { q: "query", m: "explore", a: "activity", s: "storage" };
  const view = views[event.key];
  if (view && Date.now() - awaitingView < 1500) {
    awaitingView = 0;
    go(view);
  } else if (event.key === "g") awaitingView = Date.now();
  else if (event.key === "?") showHelp();
  else if (event.key === "/") mounted?.focus?.();
  else if (!mounted?.key?.(event)) return;
  event.preventDefault();
}

async function showVersion(into: HTMLElement): Promise<void> {
  try {
    const { data } = await get<{ varveVersion?: string; revision?: string }>("api/v1/status/buildinfo");
    if (data.varveVersion) fill(into, data.varveVersion);
    if (data.revision) into.title = `revision ${data.revision}`;
  } catch {
    // it is only shown, nothing depends on it
  }
}

function start(): void {
  initTheme();
  const version = h("small", { class: "version" });
  const header = h(
    "header",
    { class: "top" },
    h("a", { class: "skip", href: "#main", on: { click: (event) => (event.preventDefault(), main.focus()) } }, "Skip to the content"),
    h("span", { class: "brand" }, logo(), h("b", {}, "Varve"), version),
    h("nav", { class: "nav", "aria-label": "Views" }, (Object.keys(TITLES) as View[]).map(navLink)),
    h("span", { class: "grow" }),
    button({ icon: "keys", title: "Keys", class: "button bare only-wide", click: showHelp }),
    themeButton(),
  );
  document.body.append(header, h("div", { class: "bands", "aria-hidden": "true" }), main, help);
  onNavigate(show);
  window.addEventListener("popstate", () => {
    restore();
    show();
  });
  document.addEventListener("keydown", key);
  show();
  void showVersion(version);
}

start();
