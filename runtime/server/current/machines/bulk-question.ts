/** The pages of an action on many machines: its parameters, the preview, the result. */
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fillCount, pluralOf, type PluralText } from '#kit/foundation/text.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { checkField, hidden, textField } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { MODES, isFlashMode, USUAL_FLASH_MODE } from './rules/boot-mode.ts'
import type { Machine } from './rules/machine.ts'
import { MACHINE_STATES, type MachineState } from '#fleet/machine/rules/states.ts'
import { ACTION_TEXTS, batchPath } from '#server/current/view/batch-view.ts'
import { renderAnswer, renderQuestion } from '#server/pages/question.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import {
  isArmed,
  nameOf,
  renderChannel,
  type MachineView,
  aboutDisk,
  modelOf,
} from '#server/current/view/machine-view.ts'
import { renderWarning } from '#server/current/once/once-card.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import type { ListQuery } from '#kit/web/ui/tables.ts'

/** In the order of the menu: erasing and deleting at its end. */
export const BULK_ACTIONS = [
  'disarm',
  'image',
  'mode',
  'first-boot',
  'label',
  'capture',
  'once',
  'refresh',
  'power',
  'lock',
  'unlock',
  'flash',
  'delete',
] as const
export type BulkAction = (typeof BULK_ACTIONS)[number]

export const titleOf = (action: BulkAction): string => ACTION_TEXTS[action].title

export const renderBulkBar = (total: number, query: ListQuery, hasPower: boolean): Html =>
  total === 0
    ? html`<span class="bulk" hidden></span>`
    : html`<div class="bulk" role="group" aria-label="Selected machines">
        <output data-text="{count} selected">${0} selected</output>
        <label class="check"
          ><input type="checkbox" name="all" value="1" data-total="${total}" />
          ${`all ${total} matching`}</label
        >
        ${hidden({ selecting: '1', q: query['q'] ?? '', filter: query['filter'], back: new URLSearchParams(query).toString() })}
        <details class="menu" name="menu">
          <summary class="button primary">Actions</summary>
          <div class="panel">
            ${BULK_ACTIONS.filter((action) => action !== 'power' || hasPower).map(renderChoice)}
          </div>
        </details>
        <button type="reset">Clear</button>
      </div>`

function renderChoice(action: BulkAction): Html {
  const button = html`<button name="action" value="${action}">${ACTION_TEXTS[action].menu}</button>`
  const group = GROUPS[action]
  return group === undefined
    ? button
    : html`<div role="group" aria-label="${group}">
        <p class="small dim" aria-hidden="true">${group}</p>
        ${button}
      </div>`
}

const GROUPS: Partial<Readonly<Record<BulkAction, string>>> = {
  flash: 'Erases disks',
  delete: 'Removes machines',
}

interface BulkResult {
  readonly machine: Machine
  readonly refusal: string | null
}

export interface BulkPreview extends BulkResult {
  /** Null: deleted or refused. */
  readonly after: MachineView | null
  /** Whether its next network boot then flashes a disk. */
  readonly arms: boolean
  /** What it is now. */
  readonly state: MachineState
  /** Whether one of its disks is being written now. */
  readonly isWriting: boolean
}

const FLASH_MODE_FIRST = `Its network boot flashes nothing: choose ${titleOf('mode')}, then ${MODES[USUAL_FLASH_MODE].title}.`

const isOffMode = ({ boot_mode, locked, capture }: Machine, action: BulkAction): boolean =>
  action === 'flash' && !isFlashMode(boot_mode) && !locked && !isPending(capture)

/** By the rules that carry it out. */
export function judge(
  { site, by, contact, foresee, view }: CurrentContext,
  machine: Machine,
  action: BulkAction,
  parameters: object,
): BulkPreview {
  const present = view(machine)
  const { state } = present.view
  const isWriting = present.run?.stalled === false && present.run.mode !== 'capture'
  const seen = { machine, state, isWriting }
  const skip = (refusal: string | null) => ({ ...seen, refusal, after: null, arms: false })
  const applied = site.line.actions[action]?.apply(machine, parameters, {
    ...by(),
    at: contact().now,
  })
  if (applied === undefined) return skip(null)
  if (!applied.ok) return skip(isOffMode(machine, action) ? FLASH_MODE_FIRST : applied.refusal)
  const edited = applied.value.machine
  const after = foresee(edited)
  const arms = edited.cycle !== machine.cycle && isArmed(edited)
  const refusal = action === 'flash' && !arms ? after.view.is : null
  return { ...seen, refusal, after, arms }
}

/** Ticked where machines that are being written are armed again as well. */
export const WRITING = 'writing'
const BEING_WRITTEN = 'Its disk is being written now.'

export const leaveOutWriting = (
  verdicts: readonly BulkPreview[],
  form: URLSearchParams,
): readonly BulkPreview[] =>
  form.has(WRITING)
    ? verdicts
    : verdicts.map((verdict) =>
        verdict.arms && verdict.isWriting
          ? { ...verdict, refusal: BEING_WRITTEN, after: null, arms: false }
          : verdict,
      )

const renderWriting = (verdicts: readonly BulkPreview[], form: URLSearchParams): Content => {
  const isOn = form.has(WRITING)
  const count = verdicts.filter(
    ({ isWriting, arms, refusal }) => isWriting && (arms || refusal === BEING_WRITTEN),
  ).length
  return count === 0
    ? null
    : checkField({
        name: WRITING,
        label: `Also those whose disks are being written now (${count})`,
        checked: isOn,
      })
}

/** Text to type: the number of flashed disks or deleted machines. Null: none. */
export function askedOf(verdicts: readonly BulkPreview[], action: BulkAction): string | null {
  const going = verdicts.filter(({ refusal }) => refusal === null)
  const destructive =
    action === 'delete' || action === 'once' ? going : going.filter(({ arms }) => arms)
  return destructive.length === 0 ? null : String(destructive.length)
}

/** "Arm 96 machines (1 skipped: locked)"; several reasons are listed below instead. */
export function summarize(text: PluralText, rows: readonly BulkResult[]): string {
  const reasons = rows.flatMap(({ refusal }) => (refusal === null ? [] : [clauseOf(refusal)]))
  const summary = fillCount(text, rows.length - reasons.length)
  if (reasons.length === 0) return summary
  const [reason = '', ...others] = new Set(reasons)
  return others.length > 0
    ? `${summary} (${reasons.length} skipped)`
    : `${summary} (${reasons.length} skipped: ${reason})`
}

const clauseOf = (sentence: string) =>
  `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`.replace(/\.$/, '')

export function renderPreview(preview: {
  readonly action: BulkAction
  readonly verdicts: readonly BulkPreview[]
  readonly form: URLSearchParams
  readonly wanted: string | null
  readonly error: string | null
  readonly command: Content
  /** Armed machines that would not start from their image, by the reason. */
  readonly misfits: ReadonlyMap<string | null, readonly MachineView[]>
}): Html {
  const { action, verdicts, form, wanted, error, command, misfits } = preview
  const going = verdicts.filter(({ refusal }) => refusal === null).length
  const arms = verdicts.filter((verdict) => verdict.arms).length
  const sure = {
    name: 'sure',
    label: fillHtml(
      action === 'delete' || action === 'once'
        ? 'Type {number}, the number of machines:'
        : 'Type {number}, the number of disks:',
      {
        number: html`<code>${wanted}</code>`,
      },
    ),
    value: wrongNumber(form, wanted),
    mono: true,
    required: true,
    maxLength: 6,
    // For the look of the button alone: the server judges what is typed.
    pattern: String(wanted),
    error,
  }
  return renderQuestion({
    title: summarize(ACTION_TEXTS[action].before, verdicts),
    body: html`${action === 'once' ? renderWarning() : null}
    ${
      arms > 0
        ? banner(
            'needs-you',
            fillHtml(
              pluralOf(
                {
                  one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of these machines.',
                  other:
                    '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
                },
                arms,
              ),
              { count: arms, ...STRONG },
            ),
          )
        : null
    }
    ${[...misfits].map(([why, rows]) => (why === null ? null : renderMisfit(why, rows, arms)))}
    ${renderRows(verdicts.map((verdict) => toRow(action, verdict)))} ${command}`,
    form: {
      action: BULK_PATH,
      fields: html`${keptOf(form, [WRITING])}${hidden({ seen: digestOf(verdicts) })}
      ${renderWriting(verdicts, form)} ${wanted === null ? hidden({ sure: '' }) : textField(sure)}`,
      cancel: backOf(form),
      button:
        going === 0
          ? null
          : html`<button
              class="${arms > 0 || action === 'delete' || action === 'once' ? 'danger' : 'primary'}"
              formnovalidate
            >
              ${titleOf(action)} (${going})
            </button>`,
    },
  })
}

const renderMisfit = (why: string, rows: readonly MachineView[], arms: number): Html =>
  banner(
    'needs-you',
    html`<strong>${rows.length} of ${arms} would not start from this image.</strong> ${why}
      ${renderNames(rows.slice(0, MAX_NAMES))}${
        rows.length > MAX_NAMES ? ` and ${rows.length - MAX_NAMES} more` : ''
      }`,
  )

/** The right one is typed again once something has changed. */
function wrongNumber(form: URLSearchParams, wanted: string | null): string {
  const typed = form.get('sure') ?? ''
  return typed.trim() === wanted ? '' : typed
}

export const BULK_PATH = '/ui/machines/bulk'

/** Of every disk that the question shows as erased: the answer is valid for exactly these. */
export function digestOf(verdicts: readonly BulkPreview[]): string {
  const lost = verdicts.flatMap(({ machine: { mac }, after, arms }) =>
    arms ? [[mac, after?.machine.bty_image_ref, after?.machine.target_disk_serial]] : [],
  )
  return etagOf(JSON.stringify(lost)).replaceAll('"', '')
}

const MAX_NAMED = 50

/** A search, or MACs; null: too many. */
export function readWhich(
  rows: readonly { readonly machine: Machine }[],
  form: URLSearchParams,
): { readonly q: string } | { readonly macs: readonly string[] } | null {
  const q = form.get('all') === '1' && !form.get('filter') ? (form.get('q') ?? '').trim() : ''
  if (q !== '') return { q }
  return rows.length > MAX_NAMED ? null : { macs: rows.map(({ machine }) => machine.mac) }
}

/** The form named what it does; without a loss, no question follows. */
export const AT_ONCE = 'at_once'

const toRow = (
  action: BulkAction,
  { machine, refusal, after, arms, state }: BulkPreview,
): ListedRow => ({
  machine,
  refusal,
  loses: arms,
  state,
  text: after === null ? null : arms ? describeFlash(after) : describeOther(action, after),
})

const describeOther = (
  action: BulkAction,
  { machine: { capture, labels }, view }: MachineView,
): Content =>
  action === 'capture' && isPending(capture)
    ? fillHtml('{disk} as {name}', {
        disk: html`<code>${printable(capture.disk_serial)}</code>`,
        name: html`<strong><bdi>${capture.name}</bdi></strong>`,
      })
    : action === 'label'
      ? labels.join(', ')
      : view.is

const describeFlash = ({ image, disk, machine }: MachineView): Content =>
  html`${image?.name ?? machine.bty_image_ref?.slice(0, 12)}${renderChannel(machine)} →
    <strong>${disk === null ? 'a disk that is not listed yet' : modelOf(disk)}</strong>
    <code>${printable(machine.target_disk_serial ?? '')}</code>${
      disk === null ? null : html` <span class="nowrap">(${aboutDisk(disk)})</span>`
    }`

interface ListedRow extends BulkResult {
  readonly loses: boolean
  /** What it was before; absent: nobody asked. */
  readonly state?: MachineState
  readonly text: Content
}

/** Further ones are counted, so the page stays below a megabyte. */
const MAX_LISTED = 500

const LOST_ORDER = MACHINE_STATES.toSorted((one, other) => one.loss - other.loss)

/** Erased disks first, skipped machines last, by reason. */
export const renderRows = (rows: readonly ListedRow[]): Html => {
  const lost = rows.filter(({ refusal, loses }) => refusal === null && loses)
  const byState = Map.groupBy(lost, ({ state }) => state)
  const groups: readonly (readonly [string, readonly ListedRow[]])[] = [
    ['Disks that will be erased', byState.get(undefined) ?? []],
    ...LOST_ORDER.map(({ state, word }) => {
      const now = byState.size === 1 ? '' : `: ${word}`
      return [`Disks that will be erased${now}`, byState.get(state) ?? []] as const
    }),
    ['Machines', rows.filter(({ refusal, loses }) => refusal === null && !loses)],
  ]
  const skipped = rows.filter(({ refusal }) => refusal !== null)
  return html`${groups.map(([title, listed]) =>
    listed.length === 0 ? null : renderGroup(`${title} (${listed.length})`, listed),
  )}${skipped.length === 0 ? null : renderSkipped(skipped)}`
}

/** Per reason; the rest is folded. */
const MAX_NAMES = 6

function renderSkipped(skipped: readonly ListedRow[]): Html {
  const groups = Map.groupBy(skipped, ({ refusal }) => refusal)
  const reasons = [...groups].toSorted(([, one], [, other]) => other.length - one.length)
  return html`<h3>Skipped (${skipped.length})</h3>
    <ul class="rows losses options">
      ${reasons.map(([reason, rows]) => renderReason(reason, rows))}
    </ul>`
}

function renderReason(reason: string | null, rows: readonly ListedRow[]): Html {
  const [first, ...others] = rows
  if (first !== undefined && others.length === 0) return renderListed(first)
  const folded = rows.slice(MAX_NAMES, MAX_LISTED)
  return html`<li>
    <strong
      >${fillCount({ one: '{count} machine', other: '{count} machines' }, rows.length)}</strong
    >
    <div class="small">
      <span class="warning">${reason}</span> ${renderNames(rows.slice(0, MAX_NAMES))}
      ${
        folded.length === 0
          ? null
          : html`<details>
              <summary>and ${rows.length - MAX_NAMES} more</summary>
              ${renderNames(folded)}
              ${rows.length > MAX_LISTED ? `and ${rows.length - MAX_LISTED} more` : null}
            </details>`
      }
    </div>
  </li>`
}

const renderNames = (rows: readonly Pick<ListedRow, 'machine'>[]): Html =>
  html`${rows.map(
    ({ machine }, at) =>
      html`${at === 0 ? '' : ', '}<a href="${machinePath(machine.mac)}"
          ><bdi>${nameOf(machine)}</bdi></a
        >`,
  )}`

const renderGroup = (title: string, rows: readonly ListedRow[]): Html =>
  html`<h3>${title}</h3>
    <ul class="rows losses options">
      ${rows.slice(0, MAX_LISTED).map(renderListed)}
      ${rows.length > MAX_LISTED ? html`<li class="dim">and ${rows.length - MAX_LISTED} more</li>` : null}
    </ul>`

const renderListed = ({ machine, refusal, text }: ListedRow): Html =>
  html`<li>
    <span
      ><a href="${machinePath(machine.mac)}"><bdi>${nameOf(machine)}</bdi></a
      >${
        nameOf(machine) === machine.mac ? null : html`<span class="mono dim">${machine.mac}</span>`
      }</span
    >
    <span class="small"
      >${refusal === null ? text : html`<span class="warning">${refusal}</span>`}</span
    >
  </li>`

export interface BulkDone extends BulkResult {
  /** Null: deleted or skipped. */
  readonly now: MachineView | null
  readonly arms: boolean
}

/** Armed is not done. */
const describeDone = (action: BulkAction, { now, arms }: BulkDone): Content =>
  now === null
    ? 'Deleted. It reappears as discovered when it next boots from the network.'
    : arms
      ? describeFlash(now)
      : describeOther(action, now)

export function renderResult(
  action: BulkAction,
  done: readonly BulkDone[],
  form: URLSearchParams,
  batch: string | null = null,
  undo: Content = null,
): Html {
  const link = html`<div class="row">
    ${undo}${batch === null ? null : html`<a class="button primary" href="${batchPath(batch)}">Follow this batch</a>`}<a
      class="${batch === null ? 'button primary' : 'button'}"
      href="${backOf(form)}"
      >Back to machines</a
    >
  </div>`
  if (done.length === 0) {
    return renderAnswer(
      'No machines selected',
      html`<p>Select machines, or all that match, and try again.</p>
        ${link}`,
    )
  }
  const isWhole = done.every(({ refusal }) => refusal === null)
  const isNothing = done.every(({ refusal }) => refusal !== null)
  const sentence = isNothing
    ? fillCount(
        {
          one: 'Nothing was changed: the machine was skipped. No batch was made.',
          other: 'Nothing was changed: all {count} machines were skipped. No batch was made.',
        },
        done.length,
      )
    : `${summarize(ACTION_TEXTS[action].after, done)}.`
  return renderAnswer(
    titleOf(action),
    html`${banner(isWhole ? 'done' : 'needs-you', sentence)}
    ${renderRows(done.map((row) => ({ ...row, loses: row.arms, text: describeDone(action, row) })))}
    ${link}`,
  )
}

/** Not passed on: the confirmation, the search for an image, and that machines are being selected. */
const OWN_FIELDS = ['sure', 'seen', AT_ONCE, 'find', 'finding', 'selecting']

/** `but`: fields that the question asks for again. */
export const keptOf = (form: URLSearchParams, but: readonly string[] = []): Html =>
  html`${[...form].filter(([name]) => !but.includes(name) && !OWN_FIELDS.includes(name)).map(([name, value]) => hidden({ [name]: value }))}`

export function backOf(form: URLSearchParams): string {
  const query = new URLSearchParams(form.get('back') ?? '')
  return address('/ui/machines', Object.fromEntries(query))
}
