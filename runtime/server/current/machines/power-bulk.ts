/** The power of many machines at once: what is asked for, a preview for each, then one after the other. */
import { renderBmc } from '#fleet/power/rules/bmc.ts'
import { fill, pluralOf } from '#kit/foundation/text.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { checkField, hidden, radioCards, textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderSpan } from '#kit/web/ui/times.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { renderAnswer, renderQuestion } from '#server/pages/question.ts'
import { beginPower } from '#server/current/power/power-routes.ts'
import type { Machine } from './rules/machine.ts'
import { backOf, BULK_PATH, keptOf, readWhich, renderRows, summarize } from './bulk-question.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import {
  CHOICE_NAMES,
  isCut,
  parseChoice,
  POWER_CHOICES,
  type PowerChoice,
  listNames,
} from '#server/current/power/power-card.ts'
import { requestOf, keepRuns, readRuns, RUNS_FIELD } from '#server/current/power/power-posts.ts'

export const POWER_FIELDS = ['power_action', 'power_stagger', 'power_even']

/** Seconds. */
const MAX_STAGGER = 3600

interface PowerChosen {
  readonly choice: PowerChoice
  /** Seconds. */
  readonly stagger: number
  readonly isEven: boolean
}

interface PowerVerdict {
  readonly machine: Machine
  readonly refusal: string | null
  readonly text: Content
}

export function showPowerBulk(
  context: CurrentContext,
  machines: readonly Machine[],
  form: URLSearchParams,
): Html {
  const chosen = readChosen(form)
  if (chosen === null) return renderPowerForm(context, machines.length, form)
  const verdicts = machines.map((machine) => judge(context, machine, chosen))
  const going = verdicts.filter(({ refusal }) => refusal === null)
  const wanted = isCut(chosen.choice) && going.length > 0 ? String(going.length) : null
  const { power } = context.services
  const [macs, known] = [going.map(({ machine }) => machine.mac), readRuns(form)]
  const isLater = wanted !== null && macs.some((mac) => power.listLater(mac, known).length > 0)
  if (macs.length === 0 || isLater || !isConfirmed(form, wanted)) {
    const runs = wanted === null ? null : power.listRuns(macs)
    const error = findMistake(form, wanted, isLater)
    const command = renderCommand(context, verdicts, chosen, form)
    return renderPowerPreview({ verdicts, chosen, form, wanted, runs, error, command })
  }
  beginPower(context.site, power, {
    macs,
    asked: requestOf(chosen.choice, chosen.isEven),
    pause: chosen.stagger * 1000,
    by: context.by(),
    known,
  })
  return renderBegun(verdicts, chosen, form)
}

/** `wanted`: text to type; null: none. */
function isConfirmed(form: URLSearchParams, wanted: string | null): boolean {
  const typed = form.get('sure')
  return typed !== null && (wanted === null || wanted === typed.trim())
}

/** Null: nothing typed yet, or nothing needed. */
function findMistake(
  form: URLSearchParams,
  wanted: string | null,
  isLater: boolean,
): string | null {
  if (wanted === null || !form.has('sure')) return null
  return isLater
    ? 'More disks are being written now. Check the list, and type the number again.'
    : `Type ${wanted} to continue.`
}

/** Null: incomplete, or a bad number. */
function readChosen(form: URLSearchParams): PowerChosen | null {
  const choice = parseChoice(form.get('power_action'))
  const stagger = readStagger(form)
  const isEven = form.get('power_even') === '1'
  return choice === null || stagger === null ? null : { choice, stagger, isEven }
}

/** Seconds; null: invalid. */
function readStagger(form: URLSearchParams): number | null {
  const text = (form.get('power_stagger') ?? '').trim()
  const seconds = text === '' ? Number.NaN : Number(text)
  return seconds >= 0 && seconds <= MAX_STAGGER ? seconds : null
}

/** `{names}`: machines whose disk is being written. */
const WRITING = 'A disk is being written: {names}. Without power that disk does not boot.'

const SHARED = 'These machines share the outlet and also lose power: {names}.'

function judge(
  context: CurrentContext,
  machine: Machine,
  { choice, isEven }: PowerChosen,
): PowerVerdict {
  const { power } = context.services
  const entry = power.book.find(machine.mac)
  const skip = (refusal: string) => ({ machine, refusal, text: null })
  if (entry === null) return skip('No BMC of this machine is set.')
  const writing = isCut(choice) ? power.listWriting(machine.mac) : []
  if (!isEven && writing.length > 0) {
    return skip(fill(WRITING, { names: writing.join(', ') }))
  }
  const sharing = isCut(choice) ? power.book.listSharing(machine.mac) : []
  const warn = (text: typeof SHARED | typeof WRITING, macs: typeof sharing) =>
    macs.length === 0
      ? null
      : html` <span class="warning">${fillHtml(text, { names: listNames(context, macs) })}</span>`
  return {
    machine,
    refusal: null,
    text: html`Reached by ${renderBmc(entry.bmc)}.${warn(WRITING, writing)}${warn(SHARED, sharing)}`,
  }
}

export const POWER_ACTIONS = {
  on: { title: 'Turn on', text: 'Machines that are on stay on.' },
  network: {
    title: 'Turn on from network',
    text: 'Machines that are on are not restarted; an event is recorded.',
  },
  'network-restart': {
    title: 'Restart from network',
    text: 'Also machines that are on. Running systems are stopped.',
  },
  restart: { title: 'Restart', text: 'Running systems are stopped.' },
  off: { title: 'Turn off', text: 'Running systems are stopped.' },
  read: { title: 'Read state', text: 'Changes nothing.' },
} as const

export function renderPowerForm(
  context: CurrentContext,
  count: number,
  form: URLSearchParams,
): Html {
  const isTyped = form.has('power_stagger')
  const lacksChoice = isTyped && parseChoice(form.get('power_action')) === null
  return renderQuestion({
    title: pluralOf({ one: `Power: ${count} machine`, other: `Power: ${count} machines` }, count),
    form: {
      action: BULK_PATH,
      fields: html`${keptOf(form, POWER_FIELDS)}
      ${lacksChoice ? banner('failed', 'Select what to do.') : null}
      ${radioCards({
        name: 'power_action',
        legend: 'Power',
        value: form.get('power_action'),
        className: 'modes',
        cards: CHOICE_NAMES.map((name) => ({ value: name, ...POWER_ACTIONS[name] })),
      })}
      ${textField({
        name: 'power_stagger',
        label: 'Seconds between two machines',
        value: form.get('power_stagger') ?? String(context.services.config.current().power.stagger),
        error: isTyped && readStagger(form) === null ? 'Must be a number from 0 to 3600.' : null,
        maxLength: 6,
      })}
      ${checkField({
        name: 'power_even',
        label: 'Also cut the power of machines whose disk is being written',
        hint: 'Such a disk does not boot afterwards. Otherwise these machines are skipped.',
        checked: form.get('power_even') === '1',
      })}`,
      cancel: backOf(form),
      button: html`<button class="primary">Preview</button>`,
    },
  })
}

interface PowerPreview {
  readonly verdicts: readonly PowerVerdict[]
  readonly chosen: PowerChosen
  readonly form: URLSearchParams
  readonly wanted: string | null
  /** Shown in the preview; null: nothing is cut. */
  readonly runs: ReadonlySet<string> | null
  readonly error: string | null
  readonly command: Content
}

function renderPowerPreview(preview: PowerPreview): Html {
  const { verdicts, chosen, form, wanted, runs, error, command } = preview
  const { title } = POWER_ACTIONS[chosen.choice]
  const going = verdicts.filter(({ refusal }) => refusal === null).length
  return renderQuestion({
    title: summaryOf(chosen, verdicts),
    body: html`${renderEnd(going, chosen)} ${listVerdicts(verdicts)} ${command}`,
    form: {
      action: BULK_PATH,
      fields: html`${keptOf(form, [RUNS_FIELD])} ${runs === null ? null : keepRuns(runs)}
      ${
        wanted === null
          ? hidden({ sure: '' })
          : textField({
              name: 'sure',
              label: html`Type <code>${wanted}</code>, the number of machines:`,
              mono: true,
              required: true,
              maxLength: 6,
              pattern: wanted,
              error,
            })
      }`,
      cancel: backOf(form),
      button:
        going === 0
          ? null
          : html`<button class="${wanted === null ? 'primary' : 'danger'}" formnovalidate>
              ${title} (${going})
            </button>`,
    },
  })
}

function renderCommand(
  context: CurrentContext,
  verdicts: readonly PowerVerdict[],
  { choice, stagger, isEven }: PowerChosen,
  form: URLSearchParams,
): Content {
  const which = readWhich(verdicts, form)
  if (which === null) return null
  const { action, boot } = POWER_CHOICES[choice]
  const body = { ...which, action, boot, stagger, even_while_writing: isEven }
  return renderCurlBlock(context, [{ method: 'POST', path: '/power/bulk', body, scope: 'power' }])
}

const summaryOf = ({ choice }: PowerChosen, verdicts: readonly PowerVerdict[]): string => {
  const { title } = POWER_ACTIONS[choice]
  return summarize(
    { one: `${title}: {count} machine`, other: `${title}: {count} machines` },
    verdicts,
  )
}

/** Nothing where that is at once. */
function renderEnd(going: number, { stagger }: PowerChosen): Content {
  const seconds = Math.max(0, going - 1) * stagger
  return seconds === 0 ? null : html`<p>The last one starts after ${renderSpan(seconds)}.</p>`
}

const listVerdicts = (verdicts: readonly PowerVerdict[]): Html =>
  renderRows(verdicts.map((verdict) => ({ ...verdict, loses: false })))

const renderBegun = (
  verdicts: readonly PowerVerdict[],
  chosen: PowerChosen,
  form: URLSearchParams,
): Html =>
  renderAnswer(
    summaryOf(chosen, verdicts),
    html`${banner('done', 'Requested. Each result is an event.')} ${listVerdicts(verdicts)}
      <div class="row">
        <a class="button" href="/ui/events?q=machine.power">Events</a>
        <a class="button" href="/ui/batches">In progress</a>
        <a class="button primary" href="${backOf(form)}">Back to machines</a>
      </div>`,
  )
