/** What the forms of a machine's power do, and the question before it is turned off. */
import { fill } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { PowerChange } from '#fleet/power/rules/bmc.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Html } from '#kit/web/ui/html.ts'
import { buttonAt, formAt, removalAt } from '#server/pages/context-routes.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { machinePath, MACHINES_TRAIL } from '#server/pages/machines/machines-list.ts'
import { showRemoval, renderQuestion } from '#server/pages/question.ts'
import type { PowerBody } from '#server/power/rules/power-request.ts'
import { forgetBmc, forgetCertificate, recordPowerSetting, saveBmc } from './power-settings.ts'
import { beginPower } from './power-routes.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import {
  BMC_TEST,
  parseBmcForm,
  readBmcForm,
  renderTested,
  testedBmc,
  typedBmc,
  type BmcValues,
} from './bmc-form.ts'
import { saveSettings } from '#server/current/assembly/configuration.ts'
import { recordSettingsEvent } from '#server/pages/settings/file-posts.ts'
import {
  NETWORKS_FIELD,
  chooseBoot,
  isCut,
  parseChoice,
  POWER_CHOICES,
  type PowerChoice,
  callPower,
  listNames,
} from './power-card.ts'

const PATH = '/ui/machines/:mac'

export const POWER_POSTS = [
  formAt(`${PATH}/do/power`, 'power', press),
  formAt(`${PATH}/power`, 'admin', save),
  formAt(`${PATH}/power/networks`, 'admin', allow),
  removalAt(`${PATH}/power/delete`, 'admin', askRemoval, remove),
  buttonAt(`${PATH}/power/unpin`, 'admin', unpin),
]

export const requestOf = (choice: PowerChoice, isEven: boolean): PowerBody => ({
  ...POWER_CHOICES[choice],
  url: null,
  even_while_writing: isEven,
})

/** Cuts are asked first; the page shows the result. */
async function press(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const machine = await find(context)
  const { mac } = machine
  const { power } = context.services
  const choice = parseChoice(form.get('choice'))
  if (choice === null) throw refuse(400, 'no such request')
  if (power.book.find(mac) === null) return refusePress(context, 'No BMC of this machine is set.')
  const isEven = form.get('even') === '1'
  const isSure = form.get('confirm') === 'yes'
  const [writing, known] = [power.listWriting(mac), readRuns(form)]
  const isMeant = isEven && power.listLater(mac, known).length === 0
  if (isCut(choice) && (!isSure || (writing.length > 0 && !isMeant))) {
    const [sharing, runs] = [power.book.listSharing(mac), power.listRuns([mac])]
    const asked = { machine, choice, writing, sharing, runs, isSecond: isSure }
    return await context.show({
      title: titleCut(choice, nameOf(machine)),
      trail: MACHINES_TRAIL,
      body: renderCutQuestion(context, asked),
    })
  }
  const asked = requestOf(choice, isEven)
  const refusal = power.refuse(mac, asked)
  if (refusal !== null) return refusePress(context, refusal)
  beginPower(context.site, power, { macs: [mac], asked, pause: 0, by: context.by(), known })
  return showPage(context, { powered: 1 })
}

const refusePress = (context: CurrentContext, error: string): Answer =>
  context.goBack(machinePath(readMac(context.event)), { error, anchor: 'power' })

export function bootAfter(context: CurrentContext, form: URLSearchParams): boolean {
  const { power } = context.services
  const mac = readMac(context.event)
  const entry = power.book.find(mac)
  const choice = entry === null ? null : chooseBoot(entry.bmc)
  if (choice === null || !form.has('power')) return false
  const asked = requestOf(choice, false)
  beginPower(context.site, power, { macs: [mac], asked, pause: 0, by: context.by() })
  return true
}

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { mac } = await find(context)
  const { power } = context.services
  const values = readBmcForm(form, context.notice())
  const parsed = parseBmcForm(values, power.book.find(mac))
  if (!parsed.ok) {
    const typed = typedBmc(values, parsed.refusal)
    return context.goBack(machinePath(mac), { error: parsed.refusal.text, typed, anchor: 'power' })
  }
  if (form.has('test')) return await showTested(context, mac, values, parsed.value)
  const { bmc } = parsed.value
  const { site, event } = context
  await saveBmc({ site, control: power, event, mac }, parsed.value)
  // The next page shows its state, or why it cannot be reached.
  if (bmc.way === 'wake-on-lan') return showPage(context, { saved: 1 })
  const asked = requestOf('read', false)
  beginPower(context.site, power, { macs: [mac], asked, pause: 0, by: context.by() })
  return showPage(context, { bmc: 1 })
}

/** The form comes back with what was found. */
async function showTested(context: CurrentContext, mac: Mac, values: BmcValues, edit: PowerChange) {
  const tested = await context.services.power.test(mac, edit)
  const error = tested.ok ? '' : `The test failed: ${tested.refusal.seen}. ${tested.refusal.fix}`
  return context.goBack(machinePath(mac), {
    error,
    text: '',
    typed: testedBmc(values, tested.ok ? renderTested(tested.value) : error),
    errors: tested.ok ? {} : { [BMC_TEST]: error },
    anchor: BMC_TEST,
  })
}

async function allow(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { mac } = await find(context)
  const text = form.get(NETWORKS_FIELD) ?? ''
  const saved = await saveSettings(context.services, { 'power.networks': text })
  if (!saved.ok) {
    const { error } = saved.refusal
    return context.goBack(machinePath(mac), {
      error,
      typed: { [NETWORKS_FIELD]: text },
      anchor: 'power',
    })
  }
  const summary = 'The networks of BMCs were changed'
  await recordSettingsEvent(context, 'settings.power.updated', summary, saved.value)
  return showPage(context, { saved: 1 })
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const machine = await find(context)
  const name = nameOf(machine)
  return await showRemoval(context, {
    title: `Forget the BMC of ${name}?`,
    trail: MACHINES_TRAIL,
    question: html`Forget the BMC of <bdi>${name}</bdi>?`,
    body: html`<p>Its address, user and password are deleted. The machine stays as it is.</p>`,
    cancel: machinePath(machine.mac),
    button: 'Forget BMC',
    calls: [{ method: 'DELETE', path: `/machines/${machine.mac}/power`, scope: 'admin' }],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const { mac } = await find(context)
  await record(context, await forgetBmc(context.services.power, mac))
  return showPage(context, { 'bmc-forgotten': 1 })
}

async function unpin(context: CurrentContext): Promise<Answer> {
  const { mac } = await find(context)
  await record(context, await forgetCertificate(context.services.power, mac))
  return showPage(context, { unpinned: 1 })
}

/** Null: nothing to forget, which is fine. */
async function record({ site, event }: CurrentContext, summary: string | null): Promise<void> {
  if (summary !== null) await recordPowerSetting(site, event, readMac(event), summary)
}

const showPage = (context: CurrentContext, note: Readonly<Record<string, number>>): Answer =>
  context.goTo(`${address(machinePath(readMac(context.event)), note)}#power`)

async function find({ site, event }: CurrentContext): Promise<Machine> {
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  return machine
}

interface CutQuestion {
  readonly machine: Machine
  readonly choice: PowerChoice
  /** Machines that lose power while their disk is written. */
  readonly writing: readonly string[]
  readonly sharing: readonly string[]
  readonly runs: ReadonlySet<string>
  /** Asked once already, and a disk is being written. */
  readonly isSecond: boolean
}

const TITLES = {
  off: 'Turn off {name}?',
  restart: 'Restart {name}?',
  network: 'Restart {name} from the network?',
} as const

/** `{names}`: machines whose disk is being written. */
const WRITING = 'A disk is being written: {names}. Without power that disk does not boot.'

const SHARED = 'These machines share the outlet and also lose power: {names}.'

/** Asked twice if a disk is being written. */
function renderCutQuestion(context: CurrentContext, asked: CutQuestion): Html {
  const { machine, choice, writing, sharing, runs, isSecond } = asked
  const asksAgain = writing.length > 0 && !isSecond
  const name = html`<bdi>${nameOf(machine)}</bdi>`
  const warn = (text: typeof WRITING | typeof SHARED, macs: readonly string[]) =>
    macs.length === 0
      ? null
      : banner('needs-you', fillHtml(text, { names: listNames(context, macs) }))
  return renderQuestion({
    title: isSecond
      ? 'Cut the power while a disk is being written?'
      : fillHtml(TITLES[titleOf(choice)], { name }),
    body: html`${warn(WRITING, writing)}
    ${isSecond ? null : html`<p>The running system is cut off, as if you pulled the plug.</p>`}
    ${warn(SHARED, sharing)}`,
    command: renderCurlBlock(context, [callCut(asked)]),
    form: {
      action: context.event.url.pathname,
      fields: html`${hidden({ choice, confirm: 'yes', even: isSecond ? '1' : null })}
      ${isSecond ? keepRuns(runs) : null}`,
      cancel: machinePath(machine.mac),
      button: html`<button class="danger">${asksAgain ? 'Continue…' : buttonOf(asked)}</button>`,
    },
  })
}

/** The second answer includes what is being written. */
function callCut({ machine, choice, isSecond }: CutQuestion): CurlCall {
  const call = callPower(machine.mac, choice)
  return isSecond ? { ...call, body: { ...call.body, even_while_writing: true } } : call
}

/** The answer is about the runs that the question named, and none that begins later. */
export const RUNS_FIELD = 'runs'

export const keepRuns = (runs: ReadonlySet<string>): Html =>
  hidden({ [RUNS_FIELD]: [...runs].join(' ') })

export const readRuns = (form: URLSearchParams): ReadonlySet<string> =>
  new Set((form.get(RUNS_FIELD) ?? '').split(' '))

const BUTTONS = { off: 'Turn off', restart: 'Restart' } as const

const buttonOf = ({ choice, isSecond }: CutQuestion): string =>
  isSecond ? 'Cut the power anyway' : BUTTONS[choice === 'off' ? 'off' : 'restart']

const titleCut = (choice: PowerChoice, name: string): string =>
  fill(TITLES[titleOf(choice)], { name })

const titleOf = (choice: PowerChoice): keyof typeof TITLES =>
  choice === 'off' ? 'off' : choice === 'network-restart' ? 'network' : 'restart'
