// What the page shows, and the same as a query string: a link is the whole state.
//
//   ?g0.expr=up&g0.tab=0&g0.range_input=1h&g0.end_input=2026-11-30 13:00:00&g0.step_input=15&g0.hide=1&g1.expr=...
//   ?view=explore&metric=up&with=job="varve"
//
// That is the form of Prometheus's /graph, which old links and alerts' generator URLs have; its newer tab names
// are understood too. All panels share one range: the first one's.
import { formatDuration, formatTime, parseDuration, parseTime, type Range } from "./time";

export type View = "query" | "explore" | "activity" | "storage";
export const VIEWS: View[] = ["query", "explore", "activity", "storage"];

export type Tab = "graph" | "table" | "explain";

export interface PanelState {
  expr: string;
  tab: Tab;
  stacked: boolean;
  hidden: boolean;
}

export interface State {
  view: View;
  panels: PanelState[];
  range: Range;
  step: number | null; // ms; null = as fits the width
  refresh: number; // ms; 0 = off
  metric: string; // explore
  matchers: [string, string][]; // explore
}

const TABS: Record<string, Tab> = { "0": "graph", "1": "table", "2": "explain", graph: "graph", table: "table", explain: "explain", tree: "explain" };
const TAB_NUMBERS: Record<Tab, string> = { graph: "0", table: "1", explain: "2" };

export function emptyPanel(): PanelState {
  return { expr: "", tab: "graph", stacked: false, hidden: false };
}

function readPanels(params: URLSearchParams): PanelState[] {
  const panels: PanelState[] = [];
  for (let i = 0; i < 50 && params.has(`g${i}.expr`); i++) {
    const field = (name: string): string => params.get(`g${i}.${name}`) ?? "";
    panels.push({
      expr: field("expr"),
      tab: TABS[field("tab")] ?? "graph",
      stacked: field("stacked") === "1" || field("display_mode") === "stacked",
      hidden: field("hide") === "1",
    });
  }
  return panels.length > 0 ? panels : [emptyPanel()];
}

function readMatchers(params: URLSearchParams): [string, string][] {
  return params.getAll("with").flatMap((text): [string, string][] => {
    const at = text.indexOf("=");
    return at > 0 ? [[text.slice(0, at), text.slice(at + 1)]] : [];
  });
}

export function readState(search: string): State {
  const params = new URLSearchParams(search);
  const view = params.get("view") as View;
  const end = params.get("g0.end_input") ?? params.get("g0.moment_input") ?? "";
  const step = Number(params.get("g0.step_input") ?? params.get("g0.step") ?? "");
  return {
    view: VIEWS.includes(view) ? view : "query",
    panels: readPanels(params),
    range: { length: parseDuration(params.get("g0.range_input") ?? "") ?? 3600e3, end: end ? parseTime(end, true) : null },
    step: step > 0 ? step * 1000 : null,
    refresh: parseDuration(params.get("refresh") ?? "") ?? 0,
    metric: params.get("metric") ?? "",
    matchers: readMatchers(params),
  };
}

// Readable as text: the characters that need no escape in a query string are left as they are.
function field(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value).replace(/%(20|3A|2C|2F|7B|7D|5B|5D|28|29|40|24)/g, (code) => (code === "%20" ? "+" : decodeURIComponent(code)))}`;
}

function writePanels(state: State): string[] {
  const fields: string[] = [];
  state.panels.forEach((panel, i) => {
    const put = (name: string, value: string): void => void fields.push(field(`g${i}.${name}`, value));
    put("expr", panel.expr);
    put("tab", TAB_NUMBERS[panel.tab]);
    put("range_input", formatDuration(state.range.length));
    if (state.range.end !== null) put("end_input", formatTime(state.range.end, true));
    if (state.step !== null) put("step_input", String(state.step / 1000));
    if (panel.stacked) put("stacked", "1");
    if (panel.hidden) put("hide", "1");
  });
  if (state.refresh > 0) fields.push(field("refresh", formatDuration(state.refresh)));
  return fields;
}

export function writeState(state: State): string {
  if (state.view === "query") {
    const blank = state.panels.length === 1 && state.panels[0]!.expr === "" && state.range.length === 3600e3 && state.range.end === null;
    return blank ? "" : "?" + writePanels(state).join("&");
  }
  const fields = [field("view", state.view)];
  if (state.view === "explore" && state.metric) {
    fields.push(field("metric", state.metric));
    for (const [name, value] of state.matchers) fields.push(field("with", `${name}=${value}`));
  }
  return "?" + fields.join("&");
}

// ---- the one state, and its way into the address bar

export let state: State = readState(location.search);

export function save(how: "push" | "replace"): void {
  const url = location.pathname + writeState(state);
  if (url === location.pathname + location.search) return;
  if (how === "push") history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}

// Other views keep the queries that were open, so that going back finds them.
export function restore(): void {
  const fresh = readState(location.search);
  state = fresh.view === "query" ? fresh : { ...state, view: fresh.view, metric: fresh.metric, matchers: fresh.matchers };
}
