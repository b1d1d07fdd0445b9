// Going from view to view without loading the page again.
import { emptyPanel, save, state, type View } from "./state";

let show: () => void = () => undefined;

export function onNavigate(fn: () => void): void {
  show = fn;
}

export function go(view: View, metric = "", matchers: [string, string][] = []): void {
  state.view = view;
  state.metric = metric;
  state.matchers = matchers;
  save("push");
  show();
}

// Opens the query view with this expression, in the first panel that is free.
export function openQuery(expr: string): void {
  const free = state.panels.find((panel) => panel.expr.trim() === "" || panel.expr === expr);
  const panel = free ?? emptyPanel();
  if (!free) state.panels.push(panel);
  panel.expr = expr;
  panel.hidden = false;
  go("query");
}
