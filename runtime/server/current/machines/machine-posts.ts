/** Handles the posts of a machine's page: its form, its buttons, its removal. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { accept, refuse as reject, type Result } from '#kit/foundation/result.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { localPath, readMac } from '#kit/web/answers/checked.ts'
import { CaptureFieldsSchema } from './rules/action.ts'
import { allowDisk, applyUpsert, BOOTS_ONCE, flashAgain } from './rules/operator-edits.ts'
import { isWaiting } from '#fleet/once/rules/once-order.ts'
import { resolveArming } from '#server/current/channels/rules/channel-order.ts'
import { channelOf, MACHINE_FIELDS, namesWith, type Machine } from './rules/machine.ts'
import type { MachineUpsert } from './rules/upsert.ts'
import { buttonAt, formAt, removalAt } from '#server/pages/context-routes.ts'
import { NOTHING_BACK } from '#server/routes/fleet.ts'
import type { UpsertRefusal } from '#server/routes/site.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { isAsked, showRemoval, renderQuestion } from '#server/pages/question.ts'
import {
  readCapture,
  renderCaptureQuestion,
  typedCapture,
} from '#server/current/captures/capture-card.ts'
import { bootOnce } from '#server/current/once/once-card.ts'
import { callAction, callDelete, callFlash, callSave } from './machine-calls.ts'
import {
  describeRefusal,
  EMPTY,
  fingerprint,
  isExpected,
  isTyped,
  parseForm,
  readValues,
  WRONG_FIELD,
  type FormRefusal,
} from './machine-form.ts'
import { isArmed, nameOf, type MachineView } from '#server/current/view/machine-view.ts'
import { bootAfter } from '#server/current/power/power-posts.ts'
import { renderBootField } from '#server/current/power/power-card.ts'
import { findMisfit, renderFlashQuestion, type FlashQuestion } from './image-cards.ts'
import { machinePath, MACHINES_TRAIL } from '#server/pages/machines/machines-list.ts'
import { isFlashMode } from './rules/boot-mode.ts'
import { printable } from '#kit/foundation/printable.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'

/** The question before a machine boots a disk that may be only partly written. */
interface DiskQuestion extends FlashQuestion {
  /** Whether anybody on the network can fetch a plan. */
  readonly isOpen: boolean
}

function renderDiskQuestion(
  { view, action, values, error, isOpen, command }: DiskQuestion,
  clock: Clock,
): Html {
  const { planned_at: plannedAt, target_disk_serial: serial, mac, boot_mode } = view.machine
  return renderQuestion({
    title: html`Boot the disk of <bdi>${nameOf(view.machine)}</bdi> anyway?`,
    body: html`${error === null ? null : banner('failed', error)}
      <p>${view.boot.reason}</p>
      ${
        plannedAt === null
          ? null
          : html`<p>
              ${renderPlanned(renderTime(plannedAt, clock), serial)}
              ${isOpen ? 'Boot tokens are off, so anybody on the network could have asked for it.' : null}
            </p>`
      }
      ${banner('needs-you', 'If a flash was interrupted, the disk has only part of an image. The machine may not boot, or boot with corrupt data.')}
      <p>
        ${isFlashMode(boot_mode) ? 'From its next network boot on, the machine boots this disk. Arm it again to flash it.' : 'Its setting for network boot does not change. You can capture the disk again.'}
      </p>`,
    command,
    form: {
      action,
      fields: hidden({ ...values, confirm: 'yes' }),
      cancel: machinePath(mac),
      button: html`<button class="danger">Boot its disk anyway</button>`,
    },
  })
}

const renderPlanned = (time: Html, serial: string | null): Html =>
  serial === null
    ? html`It was last told what to do ${time}.`
    : html`It was last told to flash the disk <code>${printable(serial)}</code> ${time}.`

const PATH = '/ui/machines/:mac'
const SAVED = { saved: 1 } as const

/** `flash` and `boot-disk` ask first. */
export const MACHINE_POSTS = [
  formAt(PATH, 'machines', save),
  removalAt(`${PATH}/delete`, 'machines', askDeletion, remove),
  formAt(`${PATH}/do/flash`, 'flash', (context: CurrentContext, form) => flash(context, form)),
  formAt(`${PATH}/do/boot-disk`, 'machines', bootDisk),
  buttonAt(`${PATH}/do/disarm`, 'machines', (context: CurrentContext) =>
    act(context, 'disarm', SAVED),
  ),
  formAt(`${PATH}/undo`, 'machines', undo),
  formAt(`${PATH}/do/first-boot`, 'machines', (context: CurrentContext, form) =>
    act(context, 'first-boot', SAVED, { first_boot: form.get('first_boot') || null }),
  ),
  formAt(`${PATH}/do/capture`, 'flash', capture),
  formAt(`${PATH}/do/once`, 'flash', bootOnce),
  buttonAt(`${PATH}/do/cancel-once`, 'flash', (context: CurrentContext) =>
    act(context, 'cancel-once', { unonced: 1 }),
  ),
  buttonAt(`${PATH}/do/cancel-capture`, 'flash', (context: CurrentContext) =>
    act(context, 'cancel-capture', { uncaptured: 1 }),
  ),
  ...['refresh', 'lock', 'unlock'].map((action) =>
    buttonAt(`${PATH}/do/${action}`, 'machines', (context: CurrentContext) =>
      act(context, action, SAVED),
    ),
  ),
]

async function askDeletion(context: CurrentContext): Promise<Answer> {
  const machine = await find(context)
  const { mac } = machine
  return await showRemoval(context, {
    title: `Delete ${nameOf(machine)}`,
    trail: MACHINES_TRAIL,
    question: html`Delete <bdi>${nameOf(machine)}</bdi>?`,
    body: html`<p>
      ${fillHtml('The record of {mac} is deleted with its name, labels, image and disk; its events and runs are kept. No disk is changed. The machine reappears as discovered when it next boots from the network.', { mac: html`<code>${mac}</code>` })}
    </p>`,
    cancel: machinePath(mac),
    button: 'Delete machine',
    calls: [callDelete(machine)],
  })
}

async function remove({ site, event, by, goTo }: CurrentContext): Promise<Answer> {
  const mac = readMac(event)
  const isGone = await site.fleet.remove(mac, by())
  return goTo(address('/ui/machines', isGone ? { deleted: mac } : { missing: mac }))
}

/** Restores it disarmed, and asks whether to arm it again. */
async function undo(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { site, by } = context
  const mac = readMac(context.event)
  const undone = await site.fleet.undo(mac, by(), { edit: form.get('edit') ?? '-' })
  const error = undone.result === 'refused' ? undone.reason : null
  const machine = site.machines.peek(mac)
  if (canArmAgain(context, machine) && (error === null || error === NOTHING_BACK)) {
    const said =
      error === null
        ? banner('done', 'Undone. The machine has its former settings and is not armed.')
        : banner('needs-you', error)
    return await flash(context, new URLSearchParams(), said)
  }
  return error === null
    ? context.goTo(address(machinePath(mac), { undone: 1 }))
    : context.goBack(machine === null ? '/ui/machines' : machinePath(mac), { error })
}

const canArmAgain = ({ site }: CurrentContext, machine: Machine | null): boolean =>
  machine?.cycle.disarmed_by === 'operator' && flashAgain(machine, site.now().toISOString()).ok

/** Our form asks first where a disk would be flashed. */
async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const values = readValues(form, EMPTY)
  const query = { back: form.get('back') }
  const fail = ({ error, text, field }: FormRefusal) => {
    const typed = field === null ? values : { ...values, [WRONG_FIELD]: field }
    return context.goBack(machinePath(mac), { error, text, typed, query })
  }
  const parsed = parseForm(values, { hasName: form.has('name') })
  if (!parsed.ok) return fail(parsed.refusal)
  const before = await site.machines.find(mac)
  const foreseen = await foreseeArmed(context, before, parsed.value)
  if (!foreseen.ok) return fail(foreseen.refusal)
  const armed = foreseen.value
  const confirm = form.get('confirm')
  if (armed !== null && confirm !== null) {
    const refusal = refusalOf(confirm, armed, form)
    if (refusal !== undefined) {
      return ask(context, armed, form, { error: refusal, call: callSave(armed.machine) })
    }
  }
  const expected = isExpected(form.get('was'))
  const saved = await site.fleet.upsert(mac, parsed.value, context.by(), expected)
  if (!saved.ok) {
    if (saved.refusal.why === 'missing') throw refuse(404, `no machine record for ${mac}`)
    return fail(describeUpsertRefusal(saved.refusal))
  }
  await saveOptions(context, saved.value, form)
  if (confirm === null) return context.goTo(localPath(form.get('back'), '/ui/machines'))
  const note = armed === null ? SAVED : armedQuery(context, form)
  return context.goTo(address(machinePath(mac), { ...note, ...query }))
}

const FORM_STALE =
  'The machine was changed in the meantime. Your entries are still here: check them and save again.'

const STALE: FormRefusal = { error: FORM_STALE, text: FORM_STALE, field: null }

function describeUpsertRefusal(
  refusal: Exclude<UpsertRefusal, { readonly why: 'missing' }>,
): FormRefusal {
  if (refusal.why === 'stale') return STALE
  if (refusal.why === 'fields') return describeRefusal(refusal.fields, [])
  return { error: refusal.reason, text: refusal.reason, field: 'labels' }
}

async function foreseeArmed(
  context: CurrentContext,
  before: Machine | null,
  upsert: MachineUpsert,
): Promise<Result<MachineView | null, FormRefusal>> {
  const armed = before === null ? null : armedBy(context, before, upsert)
  const misfit = armed === null ? null : await context.refuseArming(before, armed.machine)
  return misfit === null
    ? accept(armed)
    : reject({ error: misfit, text: misfit, field: 'bty_image_ref' })
}

/** Null: it flashes no disk that would not be flashed now. */
function armedBy(
  context: CurrentContext,
  before: Machine,
  upsert: MachineUpsert,
): MachineView | null {
  const edited = applyUpsert(before, before.mac, upsert, context.site.now().toISOString())
  const isSame =
    before.boot_mode === upsert.boot_mode &&
    before.bty_image_ref === upsert.bty_image_ref &&
    before.target_disk_serial === upsert.target_disk_serial
  return edited.ok && isArmed(edited.value) && !isSame ? context.foresee(edited.value) : null
}

/** Undefined: confirmed; null: not asked yet. */
function refusalOf(
  confirm: string,
  { machine }: MachineView,
  form: URLSearchParams,
): string | null | undefined {
  if (confirm === 'ask') return null
  if (form.has('power') && isWaiting(machine.once)) return BOOTS_ONCE
  const typed = isTyped(confirm, machine.target_disk_serial ?? '')
  return typed.ok ? undefined : typed.refusal
}

interface AskedFlash {
  readonly error: string | null
  /** Absent: the address of the question. */
  readonly action?: string
  readonly messages?: Content
  readonly call: CurlCall
}

async function ask(
  context: CurrentContext,
  view: MachineView,
  form: URLSearchParams,
  { error, action = context.event.url.pathname, messages, call }: AskedFlash,
): Promise<Answer> {
  const { confirm, power: _, ...values } = Object.fromEntries(form)
  return await context.show({
    title: `Arm ${nameOf(view.machine)}`,
    ...(messages === undefined ? {} : { messages }),
    body: renderFlashQuestion({
      view,
      action,
      values,
      typed: confirm === 'ask' ? '' : (confirm ?? ''),
      error,
      misfit: await findMisfit(context, view),
      more: renderBootField(context, view.machine),
      command: renderCurlBlock(context, [call]),
    }),
  })
}

const CHANGED = 'The machine was changed in the meantime: please check again.'

async function flash(
  context: CurrentContext,
  form: URLSearchParams,
  messages?: Content,
): Promise<Answer> {
  const found = await find(context)
  const { mac } = found
  const planned = await planFlash(context, found)
  if (!planned.ok) return context.goBack(machinePath(mac), { error: planned.refusal })
  const { machine, next } = planned.value
  const view = context.foresee(next)
  const refusal = refusalOf(form.get('confirm') ?? 'ask', view, form)
  // A change since the question asks again.
  const isSame = isExpected(form.get('was'))(machine)
  if (refusal === undefined && isSame) {
    return act(context, 'flash', () => armedQuery(context, form), expectImage(machine))
  }
  const error = refusal === undefined ? CHANGED : refusal
  const confirm = form.get('confirm') ?? 'ask'
  const shown = new URLSearchParams({ was: fingerprint(machine), confirm })
  const action = `${machinePath(machine.mac)}/do/flash`
  return ask(context, view, shown, { error, action, messages, call: callFlash(machine) })
}

/** The machine as it is armed, and as it will be then; or why not. */
async function planFlash(context: CurrentContext, found: Machine) {
  const { channels } = context.services
  const resolved = resolveArming(found, (name) => channels.find(name)?.bty_image_ref ?? null)
  if (!resolved.ok) return resolved
  const machine = resolved.value
  const next = flashAgain(machine, context.site.now().toISOString())
  if (!next.ok) return next
  const misfit = await context.refuseArming(machine, next.value)
  return misfit === null ? accept({ machine, next: next.value }) : reject(misfit)
}

/** A channel that moves between answer and order refuses the order. */
function expectImage(machine: Machine): object {
  const channel = channelOf(machine)
  return channel === null ? {} : { channel, bty_image_ref: machine.bty_image_ref }
}

async function find({ site, event }: CurrentContext): Promise<Machine> {
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  return machine
}

/** Asks until the answer is about the machine as it is now. */
async function bootDisk(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const machine = await find(context)
  const allowed = allowDisk(machine, context.site.now().toISOString())
  if (!allowed.ok) return context.goBack(machinePath(machine.mac), { error: allowed.refusal })
  const isSame = isExpected(form.get('was'))(machine)
  if (form.get('confirm') === 'yes' && isSame) return act(context, 'boot-disk', { disk: 1 })
  const question = {
    view: context.view(machine),
    action: context.event.url.pathname,
    values: { was: fingerprint(machine) },
    error: isSame ? null : CHANGED,
    command: renderCurlBlock(context, [callAction(machine, 'boot-disk')]),
    isOpen: context.services.config.current().pxe.tokens === 'off',
  }
  return await context.show({
    title: `Boot the disk of ${nameOf(machine)}`,
    body: renderDiskQuestion(question, context.clock()),
  })
}

async function capture(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const typed = readCapture(form)
  const fields = CaptureFieldsSchema.safeParse(typed)
  const back = { typed: typedCapture(typed), anchor: 'capture' }
  if (fields.success) {
    return isAsked(form)
      ? askCapture(context, typed)
      : act(context, 'capture', { captured: 1 }, fields.data, back)
  }
  return context.goBack(machinePath(readMac(context.event)), {
    error: 'The name of a captured image must be a file name that ends in .img.zst.',
    ...back,
  })
}

async function askCapture(
  context: CurrentContext,
  typed: ReturnType<typeof readCapture>,
): Promise<Answer> {
  const machine = await find(context)
  return await context.show({
    title: `Capture a disk of ${nameOf(machine)}`,
    body: renderCaptureQuestion(context, machine, typed),
  })
}

type PageQuery = Readonly<Record<string, number>>

/** And booted now, if requested. */
const armedQuery = (context: CurrentContext, form: URLSearchParams): PageQuery =>
  bootAfter(context, form) ? { armed: 1, powered: 1 } : { armed: 1 }

async function act(
  context: CurrentContext,
  action: string,
  note: PageQuery | (() => PageQuery),
  parameters: object = {},
  back: Pick<NonNullable<Parameters<CurrentContext['goBack']>[1]>, 'typed' | 'anchor'> = {},
): Promise<Answer> {
  const mac = readMac(context.event)
  const acted = await context.site.fleet.act(mac, { action, parameters }, context.by())
  if (acted.result === 'missing') throw refuse(404, `no machine record for ${mac}`)
  return acted.result === 'refused'
    ? context.goBack(machinePath(mac), { error: acted.reason, ...back })
    : context.goTo(address(machinePath(mac), typeof note === 'function' ? note() : note))
}

/** An absent or invalid one stays. */
async function saveOptions({ site, by }: CurrentContext, machine: Machine, form: URLSearchParams) {
  for (const name of namesWith('form')) {
    const { schema, setBy } = MACHINE_FIELDS[name]
    const text = form.get(name)
    // A flag comes as a word.
    const data =
      schema.safeParse(text).data ?? (text ? schema.safeParse(text === 'true').data : undefined)
    if (data === undefined || data === machine[name]) continue
    const request = { action: setBy.action, parameters: { [name]: data }, continues: true }
    await site.fleet.act(machine.mac, request, by())
  }
}
