// Light, dark, or as the system says; and the colours that canvases need as plain values.
import { button, icon } from "./dom";

type Choice = "auto" | "light" | "dark";
const ORDER: Choice[] = ["auto", "light", "dark"];
const ICONS = { auto: "auto", light: "sun", dark: "moon" } as const;
const changed = new Set<() => void>();
let choice = ORDER.find((c) => c === localStorage.getItem("varve-theme")) ?? "auto";

function apply(): void {
  if (choice === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice;
  for (const fn of changed) fn();
}

export function initTheme(): void {
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

export function onTheme(fn: () => void): () => void {
  changed.add(fn);
  return () => void changed.delete(fn);
}

function set(next: Choice): void {
  choice = next;
  localStorage.setItem("varve-theme", choice);
  apply();
}

export function themeButton(): HTMLButtonElement {
  const label = (): string => `Theme: ${choice}`;
  const it = button({
    icon: ICONS[choice],
    title: label(),
    class: "button bare theme",
    click: () => {
      set(ORDER[(ORDER.indexOf(choice) + 1) % ORDER.length]!);
      it.replaceChildren(icon(ICONS[choice]));
      it.title = label();
      it.setAttribute("aria-label", label());
    },
  });
  return it;
}

let probe: HTMLElement | null = null;

// The value of a custom property as the current theme has it.
export function color(name: string): string {
  if (!probe) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const SERIES_COLORS = 10;

export function seriesVar(slot: number): string {
  return `var(--series-${slot % SERIES_COLORS})`;
}

export function seriesColor(slot: number): string {
  return color(`series-${slot % SERIES_COLORS}`);
}
