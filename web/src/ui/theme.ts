/** The theme that the user chose; `system` follows the system's. */
export type Theme = "system" | "light" | "dark";

const key = "pollux.theme";
const order: Theme[] = ["system", "light", "dark"];

/** The chosen theme. */
export function currentTheme(): Theme {
  const stored = localStorage.getItem(key) as Theme | null;
  return stored && order.includes(stored) ? stored : "system";
}

/** Puts the chosen theme on the page. */
export function applyTheme(): void {
  const theme = currentTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Goes to the next theme and returns it. */
export function cycleTheme(): Theme {
  const next = order[(order.indexOf(currentTheme()) + 1) % order.length] ?? "system";
  localStorage.setItem(key, next);
  applyTheme();
  return next;
}
