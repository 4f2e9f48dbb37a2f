/** Events as a short list: what happened, who did it, when. */
import { upperFirst } from '#kit/foundation/text.ts'
import { MODES } from '#server/current/machines/rules/boot-mode.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import {
  isAlarm,
  readChanges,
  renderValue,
  type FieldChanges,
} from '#fleet/state/rules/event-table.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { batchPath, sayBatch } from './batch-view.ts'
import { icon, shorten } from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { printable, printableText } from '#kit/foundation/printable.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { columnOf } from '#server/current/machines/rules/machine.ts'
import { findNamed } from '#kit/config/rules/setting.ts'
import { SETTINGS } from '#server/current/settings/rules/settings.ts'
import { modelOf } from './machine-view.ts'
import type { CurrentContext } from './page-context.ts'
import { renderWhat, runPath } from './run-table.ts'

/** Machines are called by what `findName` finds, or by their MACs. */
export const renderEventList = (
  events: readonly JournalEvent[],
  clock: Clock,
  findName: EventWords['findName'] = () => null,
): Html =>
  events.length === 0
    ? html`<p class="dim">Nothing yet.</p>`
    : html`<ul class="rows">
        ${events.map(
          (event) =>
            html`<li title="${event.kind}">
              <span class="grow"
                >${isAlarm(event.kind) ? html`<span class="badge failed" title="Failed">${icon('failed')}</span> ` : null}${renderSummary(event, null, findName)}</span
              >
              <span class="when">${renderTime(event.ts, clock)}</span>
            </li>`,
        )}
      </ul>`

/** The MAC is a link. `withoutSubject`: the MAC of the page's machine, cut off in front. */
export function renderSummary(
  event: JournalEvent,
  withoutSubject: string | null = null,
  findName: EventWords['findName'] = () => null,
): Content {
  const { subject_kind: kind, subject_id: id } = event
  return kind === 'batch' && id !== null
    ? html`<a href="${batchPath(id)}">${sayBatch(event)}</a>`
    : renderMachineSummary(event, withoutSubject, findName)
}

function renderMachineSummary(
  event: JournalEvent,
  withoutSubject: string | null,
  findName: EventWords['findName'],
): Content {
  const { summary, subject_id: id } = event
  if (id === null || !summary.includes(id) || !parseMac(id).ok) return summary
  const [before = '', ...rest] = summary.split(id)
  const after = rest.join(id)
  if (id === withoutSubject) return before === '' ? upperFirst(after.trim()) : summary
  return html`${before}${renderSubject(id, findName(id))}${after}`
}

const renderSubject = (mac: string, name: string | null): Html =>
  name === null
    ? html`<a class="mono" href="/ui/machines/${mac}">${mac}</a>`
    : html`<a href="/ui/machines/${mac}" title="${mac}"><bdi>${name}</bdi></a>`

// What an event says in words beside its summary: which image went to which disk, and what it changed.

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
    findSetting: (name) => findNamed(SETTINGS, name)?.title ?? null,
  }
}

function describePicked({ site }: CurrentContext, mac: string, name: string): string | null {
  const parsed = parseMac(mac)
  const disks = parsed.ok ? site.machines.peek(parsed.value)?.known_disks : null
  const disk = disks?.find(({ serial }) => serial === name)
  return disk === undefined ? null : `${modelOf(disk)}, ${name}`
}

/** What the summary does not say of the run, in brackets. A model alone does not identify a disk. */
export function renderWritten(event: JournalEvent, { findRun }: EventWords): Content {
  const { subject_kind: kind, subject_id: mac, details, summary } = event
  const id = details?.['run']
  if (kind !== 'machine' || mac === null || typeof id !== 'string') return null
  const run = findRun(mac, id)
  return run === null
    ? null
    : html`<span class="small">(<a href="${runPath(run)}">${sayUnsaid(summary, run)}</a>)</span>`
}

function sayUnsaid(summary: string, run: Run): Content {
  const says = (name: string | null | undefined) => name != null && summary.includes(name)
  const serial = run.disk?.serial ?? null
  const isNamed = says(run.image?.name) && [serial, run.disk?.model].some(says)
  if (!isNamed) return renderWhat(run, true)
  return serial === null || says(serial) ? 'run' : printable(serial)
}

const FIELDS: ReadonlyMap<string, string> = new Map(Object.entries(columnOf('title')))

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
    ${more > 0 ? html`<li class="dim">and ${more} more, see the details</li>` : null}
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
  Object.entries(MODES).map(([mode, { title }]) => [mode, title]),
)

const renderSide = (side: 'before' | 'after', text: string): Html => {
  const shown = shorten(text, MAX_CHARACTERS)
  const title = shown === text ? null : text
  return side === 'before'
    ? html`<span class="spoken">from</span> <del title="${title}"><bdi>${shown}</bdi></del>`
    : html`<span class="spoken">to</span> <ins title="${title}"><bdi>${shown}</bdi></ins>`
}
