/** The look of the report: one column, system fonts, light and dark, from 400 px of width up, and printable. */
import { dark, light, paletteProperties } from "./palette.ts";

const page = `
*, *::before, *::after { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--surface); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
}
main, header, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 48px; }
section.part { margin-top: 56px; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; margin: 0; }
h1 { font-size: clamp(26px, 4.2vw, 40px); font-weight: 650; letter-spacing: -0.02em; max-width: 24em; }
h1 .interval { font-weight: 400; color: var(--muted); letter-spacing: 0; white-space: nowrap; }
h2 { font-size: 22px; font-weight: 650; letter-spacing: -0.01em; }
h3 { font-size: 16px; font-weight: 650; }
h4 { font-size: 14px; font-weight: 650; }
p { margin: 8px 0 0; max-width: 70ch; }
.eyebrow { margin: 0 0 12px; color: var(--muted); font-size: 14px; }
.verdict { font-size: 18px; margin-top: 16px; }
.muted, .facts, .caption, footer { color: var(--muted); }
.facts, .caption { font-size: 14px; }
.caption { max-width: 96ch; }
.good { color: var(--good); }
.bad { color: var(--bad); }
a { color: inherit; }
:focus-visible { outline: 2px solid var(--series-1); outline-offset: 2px; border-radius: 3px; }
footer { margin-top: 64px; padding-bottom: 48px; font-size: 14px; }
pre { margin: 12px 0 0; padding: 16px; background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; overflow-x: auto; font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
details > summary { cursor: pointer; }
details.source { margin-top: 12px; }
details.source > summary { font-weight: 600; }
`;

const charts = `
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 320px), 1fr)); column-gap: 32px; margin-top: 24px; }
.grid figure { margin-bottom: 36px; }
.grid.wide { grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr)); }
figure { margin: 0; min-width: 0; }
figure.small { display: grid; grid-template-rows: subgrid; grid-row: span 2; gap: 0; align-content: start; }
figure.wide { margin-top: 24px; }
figcaption h3 + .caption { margin-top: 2px; }
svg { display: block; width: 100%; height: auto; margin-top: 10px; overflow: visible; }
svg.narrow { display: none; }
svg text { font-size: 12px; fill: var(--muted); font-variant-numeric: tabular-nums; }
svg text.end { text-anchor: end; }
svg text.middle { text-anchor: middle; }
svg text.label { font-weight: 600; }
table.plain td .interval { display: block; }
table.plain th.number { white-space: normal; min-width: 58px; }
.accounts { padding-left: 18px; }
.accounts li { margin-top: 6px; }
svg line.grid { stroke: var(--rule); stroke-width: 1; opacity: 0.7; }
svg line.axis { stroke: var(--muted); stroke-width: 1; }
svg line.stage { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 2 3; }
svg path.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
svg path.faint { fill: none; stroke-width: 1; stroke-linejoin: round; opacity: 0.4; }
svg path.area { stroke: var(--surface); stroke-width: 1; fill-opacity: 0.85; }
svg path.area.fill-6 { fill-opacity: 0.3; }
svg g.points circle { stroke: var(--surface); stroke-width: 1.5; }
svg line.whisker { stroke-width: 2; }
`;

const tables = `
.scroll { overflow-x: auto; margin-top: 20px; }
table { border-collapse: collapse; width: 100%; font-size: 15px; }
th, td { padding: 9px 14px 9px 0; text-align: left; vertical-align: baseline; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; }
thead th { color: var(--muted); font-size: 13px; font-weight: 500; }
td.number, th.number { text-align: right; white-space: nowrap; padding-left: 14px; }
td .interval { color: var(--muted); font-size: 13px; white-space: nowrap; }
td .note { display: block; }
tr.group th { padding-top: 22px; color: var(--muted); font-weight: 500; font-size: 13px; }
td.range, th.range { width: 21%; min-width: 150px; padding: 9px 0 9px 14px; }
td.range { vertical-align: middle; }
td.range svg { margin: 0; height: 18px; }
svg line.link { stroke: var(--rule); stroke-width: 2; }
svg circle.before { fill: var(--surface); stroke: var(--muted); stroke-width: 2; }
svg line.before { stroke: var(--muted); stroke-width: 2; }
svg circle.after { fill: var(--series-1); }
svg line.after { stroke: var(--series-1); stroke-width: 2; }
`;

const browser = `
form { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: end; margin-top: 20px; }
form[hidden], [hidden] { display: none !important; }
label { display: grid; gap: 3px; font-size: 13px; color: var(--muted); min-width: 0; }
select, input, form button { font: inherit; font-size: 14px; color: var(--text); background: var(--raised); border: 1px solid var(--rule); border-radius: 6px; padding: 6px 9px; min-height: 36px; max-width: 100%; }
form button { cursor: pointer; }
#count { font-size: 14px; color: var(--muted); margin: 12px 0 0; }
.browser { display: grid; grid-template-columns: minmax(0, 330px) minmax(0, 1fr); gap: 28px; margin-top: 12px; align-items: start; }
#list { list-style: none; margin: 0; padding: 0; max-height: 82vh; overflow-y: auto; position: sticky; top: 12px; border: 1px solid var(--rule); border-radius: 8px; background: var(--raised); }
#list li + li { border-top: 1px solid var(--rule); }
.item { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 2px 10px; width: 100%; padding: 10px 14px; font: inherit; font-size: 14px; line-height: 1.4; color: inherit; text-align: left; background: none; border: 0; cursor: pointer; }
.item:hover { background: var(--surface); }
.item[aria-current] { background: var(--surface); box-shadow: inset 3px 0 var(--series-1); }
.item:focus-visible { outline-offset: -2px; }
.item-facts { grid-column: 1 / -1; color: var(--muted); font-size: 13px; }
.worth { font-weight: 600; }
#detail { min-width: 0; }
.columns { display: grid; gap: 24px; margin-top: 16px; }
.columns.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.trajectory { min-width: 0; }
.segment { margin-top: 12px; padding-left: 12px; border-left: 3px solid var(--rule); }
.segment.policy { border-color: var(--series-2); }
.segment.environment { border-color: var(--series-1); }
.segment-label { font-size: 12px; color: var(--muted); }
.segment.policy .segment-label { color: var(--series-2); }
.segment.environment .segment-label { color: var(--series-1); }
summary .segment-label { display: inline; }
.segment-text { white-space: pre-wrap; font: 13px/1.6 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; margin-top: 3px; }
.segment.prompt .segment-text, .segment.environment .segment-text { color: var(--muted); }
.token { border-radius: 2px; cursor: default; background: color-mix(in srgb, var(--series-2) calc(var(--surprise) * 55%), transparent); }
.token:hover, .token:focus { outline: 1.5px solid var(--series-2); }
mark { background: none; color: inherit; }
.gold-answer { font-weight: 700; color: var(--good); text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 3px; }
mark.gold-passage { color: var(--text); background: color-mix(in srgb, var(--good) 13%, transparent); }
mark.gold-passage.gold-answer { color: var(--good); }
.passages { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 4px 0 0; padding: 0; list-style: none; font-size: 13px; color: var(--muted); }
.passages .gold-passage { color: var(--good); font-weight: 600; }
.score { font-weight: 400; opacity: 0.8; }
#tip { position: fixed; z-index: 2; max-width: calc(100vw - 16px); padding: 5px 9px; border-radius: 6px; background: var(--text); color: var(--surface); font-size: 13px; line-height: 1.35; pointer-events: none; }
.key { display: flex; flex-wrap: wrap; gap: 4px 20px; margin-top: 14px; font-size: 13px; color: var(--muted); }
.swatch.token { color: var(--text); }
.swatch { padding: 0 5px; border-radius: 2px; --surprise: 0.9; }
`;

const narrow = `
@media (max-width: 720px) {
  main, header, footer { padding-left: 16px; padding-right: 16px; }
  header { padding-top: 28px; }
  svg.wide-only { display: none; }
  svg.narrow { display: block; }
  .browser { grid-template-columns: minmax(0, 1fr); gap: 18px; }
  #list { max-height: 300px; position: static; }
  td.range, th.range { display: none; }
  th, td { padding-right: 4px; font-size: 14px; }
  td .interval { display: block; font-size: 12px; }
  td .interval.wide { white-space: normal; }
  td.number { white-space: normal; }
  td.number, th.number { padding-left: 8px; padding-right: 0; }
  td.n, th.n { display: none; }
  label { flex: 1 1 130px; }
  select, input { width: 100%; }
}
@media print {
  form, .browser, .key { display: none; }
  section.part { break-inside: avoid; }
}
`;

const seriesClasses = light.series
  .map((_, index) => {
    const color = `var(--series-${index + 1})`;
    return `.stroke-${index + 1} { stroke: ${color}; } svg text.fill-${index + 1}, path.fill-${index + 1}, .fill-${index + 1} circle { fill: ${color}; }`;
  })
  .join("\n");

/** The whole style sheet. */
export const styleSheet = [
  `:root { ${paletteProperties(light)} }`,
  `@media (prefers-color-scheme: dark) { :root { ${paletteProperties(dark)} } }`,
  page,
  charts,
  seriesClasses,
  tables,
  browser,
  narrow,
].join("\n");
