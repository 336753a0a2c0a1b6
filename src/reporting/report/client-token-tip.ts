/**
 * The part of the page's script that shows what is known of a token: its log-probability and advantage, which the
 * element carries. Like `client.ts` it is written into the document as text, and knows the page only.
 */

/** One set of listeners for all tokens: pointer, tap and keyboard focus show what is known; arrow keys move. */
function listenForTokens(): void {
  const detail = document.getElementById("detail");
  if (!detail) return;
  const tokenOf = (event: Event): HTMLElement | null =>
    (event.target as HTMLElement).closest<HTMLElement>(".token");
  const show = (event: Event): void => {
    const token = tokenOf(event);
    if (token) showTip(token);
    else hideTip();
  };
  for (const type of ["pointerover", "click", "focusin"]) detail.addEventListener(type, show);
  for (const type of ["pointerleave", "focusout"]) detail.addEventListener(type, hideTip);
  detail.addEventListener("keydown", (event) => {
    const token = tokenOf(event);
    if (event.key === "Escape") hideTip();
    if (!token || (event.key !== "ArrowRight" && event.key !== "ArrowLeft")) return;
    const tokens = Array.from((token.parentElement as HTMLElement).querySelectorAll<HTMLElement>(".token"));
    const next = tokens[tokens.indexOf(token) + (event.key === "ArrowRight" ? 1 : -1)];
    if (!next) return;
    event.preventDefault();
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  addEventListener("scroll", hideTip, { passive: true });
}

function showTip(token: HTMLElement): void {
  const tip = document.getElementById("tip") as HTMLElement;
  tip.textContent = token.dataset.tip ?? "";
  tip.hidden = false;
  const box = token.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
}

function hideTip(): void {
  (document.getElementById("tip") as HTMLElement).hidden = true;
}

/** The script as text. */
export const tokenTipScript = [...[listenForTokens, showTip, hideTip].map(String), "listenForTokens();"].join(
  "\n",
);
