/** What doing something to many machines would mean, and what came of it. */
import type { H3Event } from 'h3'
import { isFlashable, type CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { banner } from '../../../../web/ui/elements.ts'
import { hidden, selectField, textField } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import { splitLabels } from '../../rules/label.ts'
import { BOOT_MODES, type Machine } from '../../rules/machine.ts'
import { BULK_ACTIONS, type BulkAction } from './bulk-bar.ts'
import type { PageContext } from '../frame/page-context.ts'
import { isArmed, nameOf, viewMachine, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'

export interface Verdict {
  readonly machine: Machine
  /** Why it is left out; null: it is not. */
  readonly refusal: string | null
  /** As it would be; null where nothing is left of it. */
  readonly after: MachineView | null
  /** A disk is written for this, at its next network boot. */
  readonly arms: boolean
}

export interface Done {
  readonly machine: Machine
  readonly refusal: string | null
}

/** In the past, for the summary. */
const DONE: Readonly<Record<BulkAction, string>> = {
  flash: 'armed',
  image: 'assigned the image',
  mode: 'set to the mode',
  label: 'labelled',
  refresh: 'set to list their disks',
  lock: 'locked',
  unlock: 'unlocked',
  delete: 'deleted',
}

/** Null: they were not given. */
export const readParameters = (action: BulkAction, form: URLSearchParams): object | null =>
  (PARAMETERS[action] ?? (() => ({})))(form)

/** Of those that have any: the field that shows that they were asked for. */
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

/** By the very rules that would carry it out. */
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

/** What must be typed: how many disks are written, or records forgotten. Null: nothing. */
export function askedOf(verdicts: readonly Verdict[], action: BulkAction): string | null {
  const going = verdicts.filter(({ refusal }) => refusal === null)
  const grave = action === 'delete' ? going : going.filter(({ arms }) => arms)
  return grave.length === 0 ? null : String(grave.length)
}

/** "12 will be armed, 2 skipped: no target disk." */
function summarize(action: BulkAction, rows: readonly Done[], tense: 'will be' | 'were'): string {
  const skipped = rows.filter(({ refusal }) => refusal !== null)
  const going = rows.length - skipped.length
  const first = `${going} ${tense} ${DONE[action]}`
  if (skipped.length === 0) return `${first}.`
  const reasons = [...new Set(skipped.map(({ refusal }) => refusal ?? ''))].slice(0, 3)
  return `${first}, ${skipped.length} skipped: ${reasons.join(' ')}`
}

export function renderDryRun(run: {
  readonly action: BulkAction
  readonly verdicts: readonly Verdict[]
  readonly form: URLSearchParams
  readonly wanted: string | null
  readonly error: string | null
}): Html {
  const { action, verdicts, form, wanted, error } = run
  const going = verdicts.filter(({ refusal }) => refusal === null)
  const arms = verdicts.filter((verdict) => verdict.arms).length
  const values = keptOf(form)
  return html`<section class="card stack" id="question">
    <h2 id="dialog-title">${summarize(action, verdicts, 'will be')}</h2>
    ${
      arms > 0
        ? banner(
            'needs-you',
            html`<strong>${arms} ${arms === 1 ? 'disk is' : 'disks are'} written</strong> at the
              next network boots of these machines. Everything on them is lost.`,
          )
        : null
    }
    ${renderRows(verdicts.map(toRow))}
    <form
      method="post"
      action="/ui/machines/bulk"
      hx-post="/ui/machines/bulk"
      hx-target="#dialog"
      hx-select="#question"
      hx-swap="innerHTML"
    >
      ${values}
      ${
        wanted === null
          ? hidden({ sure: '' })
          : textField({
              name: 'sure',
              label: html`Type <code>${wanted}</code>, the number of
                ${action === 'delete' ? 'machines' : 'disks'}:`,
              mono: true,
              required: true,
              most: 6,
              error,
            })
      }
      <div class="row">
        <a class="button" href="${backOf(form.get('back'))}" data-close>Cancel</a>
        ${going.length === 0 ? null : html`<button class="primary">${BULK_ACTIONS[action].replace('…', '')} (${going.length})</button>`}
      </div>
    </form>
  </section>`
}

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

/** Those that are left out first: they are what to look at. */
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

export function renderResult(action: BulkAction, done: readonly Done[], back: string | null): Html {
  const link = html`<a class="button primary" href="${backOf(back)}">Back to the machines</a>`
  if (done.length === 0) {
    return html`<section class="card stack" id="question">
      <h2 id="dialog-title">Nothing is selected</h2>
      <p>Tick some machines, or all that match, and choose again.</p>
      ${link}
    </section>`
  }
  const isWhole = done.every(({ refusal }) => refusal === null)
  return html`<section class="card stack" id="question">
    <h2 id="dialog-title">${BULK_ACTIONS[action].replace('…', '')}</h2>
    ${banner(isWhole ? 'done' : 'needs-you', summarize(action, done, 'were'))}
    ${renderRows(done.map((row) => ({ ...row, text: DONE[action] })))} ${link}
  </section>`
}

export function renderParameterForm(
  action: BulkAction,
  count: number,
  form: URLSearchParams,
  images: readonly CatalogEntry[],
): Html {
  return html`<section class="card stack" id="question">
    <h2 id="dialog-title">
      ${BULK_ACTIONS[action].replace('…', '')}: ${count} ${count === 1 ? 'machine' : 'machines'}
    </h2>
    <form
      method="post"
      action="/ui/machines/bulk"
      hx-post="/ui/machines/bulk"
      hx-target="#dialog"
      hx-select="#question"
      hx-swap="innerHTML"
    >
      ${keptOf(form)} ${renderParameterFields(action, images)}
      <div class="row">
        <a class="button" href="${backOf(form.get('back'))}" data-close>Cancel</a>
        <button class="primary">Show what would be done</button>
      </div>
    </form>
  </section>`
}

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
  return html`${textField({ name: 'add', label: 'Add labels', hint: 'With commas between them.' })}
  ${textField({ name: 'remove', label: 'Take labels away' })}`
}

/** All of the form but what is asked for now. */
const keptOf = (form: URLSearchParams): Html =>
  html`${[...form].filter(([name]) => name !== 'sure').map(([name, value]) => hidden({ [name]: value }))}`

function backOf(back: string | null): string {
  const query = new URLSearchParams(back ?? '').toString()
  return query === '' ? '/ui/machines' : `/ui/machines?${query}`
}
