/** The form that takes a file with names and labels, the preview of its lines, and what came of them. */
import { printable } from '#kit/foundation/printable.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { areaField, hidden } from '#kit/web/ui/fields.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { machinePath, MACHINES_PATH } from '#server/pages/machines/machines-list.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { ChangedLine, FileLine } from '#server/current/rules/table/machine-file.ts'
import { batchPath } from '../view/batch-view.ts'
import { APPLY_PATH, MACHINE_FILE_PATH } from './file-path.ts'

const t = PAGES.machineFile

const MAX_PASTE = 100_000

export const renderFileForm = (error: string | null, pasted = ''): Html =>
  html`${error === null ? null : banner('failed', error)}
    <section class="card stack">
      <p>${t.introduction}</p>
      <p>${t.columns}</p>
      <p><a class="button" href="/machines.csv">${t.csv}</a></p>
      <form method="post" action="${MACHINE_FILE_PATH}" enctype="multipart/form-data">
        <div class="field">
          <label for="file">${t.file}</label>
          <input
            type="file"
            id="file"
            name="file"
            accept=".csv,.tsv,.txt,text/csv"
            aria-describedby="file-hint"
          />
          <p class="hint" id="file-hint">${t.fileHint}</p>
        </div>
        ${areaField({ name: 'text', label: t.text, value: pasted.length > MAX_PASTE ? '' : pasted, rows: 8 })}
        <button class="primary">${t.preview}</button>
      </form>
    </section>`

/** In the order of display: first what needs a look. */
const KINDS = ['changed', 'refused', 'twice', 'unknown', 'same'] as const

const MAX_LISTED = 100

export function renderFilePreview(preview: {
  readonly lines: readonly FileLine[]
  readonly ignored: readonly string[]
  /** Finds the changes again; null: none. */
  readonly digest: string | null
}): Html {
  const { lines, ignored, digest } = preview
  const groups = KINDS.map((kind) => [kind, lines.filter(({ is }) => is === kind)] as const)
  const shown = groups.filter(([, found]) => found.length > 0)
  const changes = lines.filter(({ is }) => is === 'changed').length
  return html`<section class="card stack">
    <ul>
      ${shown.map(([kind, { length }]) => html`<li>${fillCount(t.counts[kind], length)}.</li>`)}
    </ul>
    ${digest === null ? html`<p>${t.nothing}</p>` : null} ${renderIgnored(ignored)}
    <form method="post" action="${APPLY_PATH}">
      <div class="row">
        <a class="button" href="${MACHINE_FILE_PATH}">${t.again}</a>
        ${
          digest === null
            ? null
            : html`${hidden({ digest })}<button class="primary">
                  ${fillCount(t.confirm, changes)}
                </button>`
        }
      </div>
    </form>
    ${shown.map(([kind, found]) => renderGroup(t.groups[kind], found, renderLine))}
  </section>`
}

const MAX_IGNORED = 20

const renderIgnored = (names: readonly string[]): Content =>
  names.length === 0
    ? null
    : html`<p class="dim">
        ${fill(t.ignored, { names: names.slice(0, MAX_IGNORED).map(shownName).join(', ') })}
      </p>`

const shownName = (name: string): string => printable(name.trim().slice(0, 40))

const renderGroup = <Row>(title: string, rows: readonly Row[], render: (row: Row) => Html): Html =>
  html`<h2>${title} (${rows.length})</h2>
    <ul class="rows">
      ${rows.slice(0, MAX_LISTED).map(render)}
      ${
        rows.length > MAX_LISTED
          ? html`<li class="dim">${fill(t.more, { count: rows.length - MAX_LISTED })}</li>`
          : null
      }
    </ul>`

const renderLine = (line: FileLine): Html =>
  html`<li>
    <span class="grow"
      ><span class="small dim">${fill(t.line, { line: line.line })}</span>
      ${renderMac(line)}${line.is === 'changed' ? renderChanges(line) : null}${
        line.is === 'refused' ? html`<br /><span class="small warning">${line.reason}</span>` : null
      }</span
    >
  </li>`

const renderMac = ({ is, mac }: FileLine): Html =>
  is === 'changed' || is === 'same'
    ? html`<a class="mono" href="${machinePath(mac)}">${mac}</a>`
    : html`<code>${printable(mac)}</code>`

const renderChanges = ({ before, after }: ChangedLine): Content => [
  before.name === after.name
    ? null
    : renderChange(t.name, before.name ?? t.none, after.name ?? t.none),
  before.labels.join(',') === after.labels.join(',')
    ? null
    : renderChange(t.labels, before.labels.join(', ') || t.none, after.labels.join(', ') || t.none),
]

const renderChange = (what: string, before: string, after: string): Html =>
  html`<br /><span class="small"
      >${what}: <bdi>${printable(before)}</bdi> →
      <strong><bdi>${printable(after)}</bdi></strong></span
    >`

export interface DoneLine {
  readonly mac: string
  readonly refusal: string | null
}

/** `batch`: the path for following and undoing; null: none. */
export function renderDone(lines: readonly DoneLine[], batch: string | null): Html {
  const skipped = lines.filter(({ refusal }) => refusal !== null)
  const done = fillCount(t.done.title, lines.length - skipped.length)
  return html`${banner(skipped.length === 0 ? 'done' : 'needs-you', `${done}.`)}
    <section class="card stack">
      <div class="row">
        ${batch === null ? null : html`<a class="button primary" href="${batchPath(batch)}">${t.done.follow}</a>`}
        <a class="button" href="${MACHINES_PATH}">${t.done.back}</a>
      </div>
      ${
        skipped.length === 0
          ? null
          : renderGroup(fillCount(t.done.skipped, skipped.length), skipped, renderSkipped)
      }
    </section>`
}

const renderSkipped = ({ mac, refusal }: DoneLine): Html =>
  html`<li>
    <span class="grow"
      ><a class="mono" href="${machinePath(mac)}">${mac}</a><br />
      <span class="small warning">${refusal}</span></span
    >
  </li>`
