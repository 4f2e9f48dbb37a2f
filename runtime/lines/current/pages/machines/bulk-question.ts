/** The pages of an action on many machines: its parameters, the preview, the result. */
import type { H3Event } from 'h3'
import { isFlashable, type CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import { hidden, selectField, textField } from '../../../../web/ui/fields.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { splitLabels } from '../../rules/label.ts'
import { BOOT_MODES, type Machine } from '../../rules/machine.ts'
import { BULK_ACTIONS, titleOf, type BulkAction } from './bulk-bar.ts'
import { renderAnswer, renderQuestion } from '../frame/question.ts'
import type { PageContext } from '../frame/page-context.ts'
import { isArmed, nameOf, viewMachine, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'

export interface Verdict {
  readonly machine: Machine
  /** Why it is skipped; null: it is not. */
  readonly refusal: string | null
  /** As the machine would be; null when it is deleted or refused. */
  readonly after: MachineView | null
  /** Whether its next network boot then flashes a disk. */
  readonly arms: boolean
}

export interface Done {
  readonly machine: Machine
  readonly refusal: string | null
}

/** Null: they have not been asked for yet. */
export const readParameters = (action: BulkAction, form: URLSearchParams): object | null =>
  (PARAMETERS[action] ?? (() => ({})))(form)

/** Actions that have parameters, by the field that shows that they were asked for. */
const PARAMETERS: Partial<Readonly<Record<BulkAction, (form: URLSearchParams) => object | null>>> =
  {
    image(form) {
      const ref = form.get('bty_image_ref')
      return ref === null ? null : { bty_image_ref: ref || null }
    },
    mode(form) {
      const boot_mode = form.get('boot_mode')
      return boot_mode === null ? null : { boot_mode }
    },
    label(form) {
      const [add, remove] = [form.get('add'), form.get('remove')]
      if (add === null) return null
      return { add: splitLabels(add), remove: splitLabels(remove ?? '') }
    },
  }

/** Decided by the same rules that carry the action out. */
export function judge(
  context: PageContext,
  event: H3Event,
  machine: Machine,
  action: BulkAction,
  parameters: object,
): Verdict {
  const rule = context.site.line.actions[action]
  const contact = context.site.contact(event)
  if (rule === undefined) return { machine, refusal: null, after: null, arms: false }
  const applied = rule.apply(machine, parameters, { ...context.site.by(event), at: contact.now })
  if (!applied.ok) return { machine, refusal: applied.refusal, after: null, arms: false }
  const after = viewMachine(applied.value.machine, context.gather(contact), null)
  const isNew = applied.value.machine.cycle !== machine.cycle
  const arms = isNew && isArmed(applied.value.machine)
  const refusal = action === 'flash' && !arms ? after.view.is : null
  return { machine, refusal, after, arms }
}

/** What must be typed: how many disks are flashed, or machines deleted. Null: nothing. */
export function askedOf(verdicts: readonly Verdict[], action: BulkAction): string | null {
  const going = verdicts.filter(({ refusal }) => refusal === null)
  const destructive = action === 'delete' ? going : going.filter(({ arms }) => arms)
  return destructive.length === 0 ? null : String(destructive.length)
}

/** "Arm 96 machines (1 skipped: locked)". */
function summarize(verb: string, rows: readonly Done[]): string {
  const reasons = rows.flatMap(({ refusal }) => (refusal === null ? [] : [clauseOf(refusal)]))
  const first = `${verb} ${renderCount(rows.length - reasons.length)}`
  if (reasons.length === 0) return first
  return `${first} (${reasons.length} skipped: ${[...new Set(reasons)].slice(0, 3).join('; ')})`
}

const renderCount = (count: number) => `${count} ${count === 1 ? 'machine' : 'machines'}`

const clauseOf = (sentence: string) =>
  `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`.replace(/\.$/, '')

export function renderPreview(preview: {
  readonly action: BulkAction
  readonly verdicts: readonly Verdict[]
  readonly form: URLSearchParams
  readonly wanted: string | null
  readonly error: string | null
}): Html {
  const { action, verdicts, form, wanted, error } = preview
  const going = verdicts.filter(({ refusal }) => refusal === null).length
  const arms = verdicts.filter((verdict) => verdict.arms).length
  const typed = {
    name: 'sure',
    label: html`Type <code>${wanted}</code>, the number of
      ${action === 'delete' ? 'machines' : 'disks'}:`,
    mono: true,
    required: true,
    maxLength: 6,
    error,
  }
  return renderQuestion({
    title: summarize(BULK_ACTIONS[action][1], verdicts),
    body: html`${
      arms > 0
        ? banner(
            'needs-you',
            html`<strong
                >${arms} ${arms === 1 ? 'disk' : 'disks'} will be erased and flashed</strong
              >
              at the next network boot of these machines.`,
          )
        : null
    }
    ${renderRows(verdicts.map(toRow))}`,
    form: {
      action: PATH,
      opensQuestion: true,
      fields: html`${keptOf(form)} ${wanted === null ? hidden({ sure: '' }) : textField(typed)}`,
      cancel: backOf(form),
      button:
        going === 0 ? null : html`<button class="primary">${titleOf(action)} (${going})</button>`,
    },
  })
}

const PATH = '/ui/machines/bulk'

const toRow = ({ machine, refusal, after, arms }: Verdict): ListedRow => ({
  machine,
  refusal,
  text: arms && after !== null ? describeFlash(after) : null,
})

const describeFlash = ({ image, disk, machine }: MachineView): Content =>
  html`${image?.name} → ${disk?.model ?? ''}
    <code>${printable(machine.target_disk_serial ?? '')}</code>`

interface ListedRow extends Done {
  readonly text: Content
}

/** The skipped ones first: they are what to look at. */
const renderRows = (rows: readonly ListedRow[]): Html =>
  html`<ul class="rows options">
    ${rows
      .toSorted((a, b) => Number(a.refusal === null) - Number(b.refusal === null))
      .slice(0, 200)
      .map(
        ({ machine, refusal, text }) =>
          html`<li>
            <a href="${machinePath(machine.mac)}">${nameOf(machine)}</a>
            <span class="grow small dim"
              >${refusal === null ? text : html`<span class="warning">skipped: ${refusal}</span>`}</span
            >
          </li>`,
      )}
    ${rows.length > 200 ? html`<li class="dim">and ${rows.length - 200} more</li>` : null}
  </ul>`

export function renderResult(
  action: BulkAction,
  done: readonly Done[],
  form: URLSearchParams,
): Html {
  const link = html`<a class="button primary" href="${backOf(form)}">Back to machines</a>`
  if (done.length === 0) {
    return renderAnswer(
      'No machines selected',
      html`<p>Select machines, or all that match, and try again.</p>
        ${link}`,
    )
  }
  const isWhole = done.every(({ refusal }) => refusal === null)
  return renderAnswer(
    titleOf(action),
    html`${banner(isWhole ? 'done' : 'needs-you', `${summarize(BULK_ACTIONS[action][2], done)}.`)}
    ${renderRows(done.map((row) => ({ ...row, text: 'done' })))} ${link}`,
  )
}

export const renderParameterForm = (
  action: BulkAction,
  count: number,
  form: URLSearchParams,
  images: readonly CatalogEntry[],
): Html =>
  renderQuestion({
    title: `${titleOf(action)}: ${renderCount(count)}`,
    form: {
      action: PATH,
      opensQuestion: true,
      fields: html`${keptOf(form)} ${renderParameterFields(action, images)}`,
      cancel: backOf(form),
      button: html`<button class="primary">Preview</button>`,
    },
  })

function renderParameterFields(action: BulkAction, images: readonly CatalogEntry[]): Html {
  if (action === 'image') {
    const options = images.filter(isFlashable).map(({ ref, name }) => ({ value: ref, text: name }))
    return selectField({
      name: 'bty_image_ref',
      label: 'Image',
      value: '',
      options: [{ value: '', text: 'None' }, ...options],
    })
  }
  if (action === 'mode') {
    const options = BOOT_MODES.map((mode) => ({ value: mode, text: mode }))
    return selectField({ name: 'boot_mode', label: 'Boot mode', value: 'ipxe-exit', options })
  }
  return html`${textField({ name: 'add', label: 'Add labels', hint: 'Separate with commas.' })}
  ${textField({ name: 'remove', label: 'Remove labels' })}`
}

/** All fields of the form but the confirmation. */
const keptOf = (form: URLSearchParams): Html =>
  html`${[...form].filter(([name]) => name !== 'sure').map(([name, value]) => hidden({ [name]: value }))}`

function backOf(form: URLSearchParams): string {
  const query = new URLSearchParams(form.get('back') ?? '')
  return address('/ui/machines', Object.fromEntries(query))
}
