/** What an event says in words beside its summary: which image went to which disk, and what it changed. */
import { printableText } from '#kit/foundation/printable.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { readChanges, renderValue, type FieldChanges } from '#fleet/state/rules/event-changes.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { shorten } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { findTitle } from '#server/pages/settings/setting-texts.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { modelOf } from './disk-text.ts'
import type { CurrentContext } from './page-context.ts'
import { renderWhat, runPath } from './run-table.ts'

const t = PAGES.events.row

export interface EventWords {
  findImage(ref: string): string | null
  findDisk(mac: string, name: string): string | null
  findRun(mac: string, id: string): Run | null
  findName(mac: string): string | null
  findSetting(name: string): string | null
}

export function readEventWords(context: CurrentContext): EventWords {
  const images = new Map(context.services.images().map(({ ref, name }) => [ref, name]))
  return {
    findImage: (ref) => images.get(ref) ?? null,
    findDisk: (mac, name) => describePicked(context, mac, name),
    findRun(mac, id) {
      const parsed = parseMac(mac)
      return parsed.ok ? context.site.runs.find(parsed.value, id) : null
    },
    findName(mac) {
      const parsed = parseMac(mac)
      return parsed.ok ? (context.site.machines.peek(parsed.value)?.name ?? null) : null
    },
    findSetting: (name) => findTitle(context.services.settingTexts, name),
  }
}

function describePicked({ site }: CurrentContext, mac: string, name: string): string | null {
  const parsed = parseMac(mac)
  const disks = parsed.ok ? site.machines.peek(parsed.value)?.known_disks : null
  const disk = disks?.find(({ serial }) => serial === name)
  return disk === undefined ? null : `${modelOf(disk)}, ${name}`
}

/** Nothing where the summary says so. */
export function renderWritten(event: JournalEvent, { findRun }: EventWords): Content {
  const { subject_kind: kind, subject_id: mac, details, summary } = event
  const id = details?.['run']
  if (kind !== 'machine' || mac === null || typeof id !== 'string') return null
  const run = findRun(mac, id)
  if (run === null || saysAll(summary, run)) return null
  const words = html`<a href="${runPath(run)}">${renderWhat(run, true)}</a>`
  return html`<p class="small">${fillHtml(t.run, { run: words })}</p>`
}

/** A model alone does not identify a disk. */
const saysAll = (summary: string, { image, disk }: Run): boolean =>
  image !== null && summary.includes(image.name ?? '') && summary.includes(disk?.serial ?? '')

const FIELDS: ReadonlyMap<string, string> = new Map(Object.entries(t.fields))

const MAX_CHANGES = 4
const MAX_CHARACTERS = 60

/** Before and after. `isWhole`: all fields, where no details say the rest. */
export const renderChanges = (event: JournalEvent, words: EventWords, isWhole = false): Content =>
  renderFieldChanges(readChanges(event.details), event.subject_id, words, isWhole)

/** `subject`: a machine's address. */
export function renderFieldChanges(
  changed: FieldChanges,
  subject: string | null,
  context: EventWords,
  isWhole: boolean,
): Content {
  const changes = Object.entries(changed)
  if (changes.length === 0) return null
  const shown = isWhole ? changes : changes.slice(0, MAX_CHANGES)
  const more = changes.length - shown.length
  return html`<ul class="changes small">
    ${shown.map(
      ([name, { before, after }]) =>
        html`<li>
          <span class="dim">${titleOf(name, context)}</span>
          ${renderSide('before', valueOf(name, before, subject, context))}
          <span class="dim" aria-hidden="true">→</span>
          ${renderSide('after', valueOf(name, after, subject, context))}
        </li>`,
    )}
    ${more > 0 ? html`<li class="dim">${fill(t.more, { count: more })}</li>` : null}
  </ul>`
}

const titleOf = (name: string, { findSetting }: EventWords): string =>
  FIELDS.get(name) ?? findSetting(name) ?? name

function valueOf(
  name: string,
  value: unknown,
  subject: string | null,
  { findImage, findDisk }: EventWords,
): string {
  const words = printableText(renderValue(value))
  if (typeof value !== 'string') return words
  switch (name) {
    case 'bty_image_ref':
      return printableText(findImage(value) ?? shorten(value, 17))
    case 'target_disk_serial':
      return printableText((subject === null ? null : findDisk(subject, value)) ?? words)
    case 'boot_mode':
      return MODE_TITLES.get(value) ?? words
    case 'name':
      // Checked when it was given; joiners are part of some scripts.
      return value
    default:
      return words
  }
}

const MODE_TITLES: ReadonlyMap<string, string> = new Map(
  Object.entries(PAGES.machine.modes).map(([mode, { title }]) => [mode, title]),
)

const renderSide = (side: 'before' | 'after', text: string): Html => {
  const shown = shorten(text, MAX_CHARACTERS)
  const title = shown === text ? null : text
  return side === 'before'
    ? html`<span class="spoken">${t.before}</span> <del title="${title}"><bdi>${shown}</bdi></del>`
    : html`<span class="spoken">${t.after}</span> <ins title="${title}"><bdi>${shown}</bdi></ins>`
}
