/** Handles the posts of a machine's page: its form, its buttons, its removal. */
import type { H3Event, HTTPResponse } from 'h3'
import type { Mac } from '../../../../core/machine/mac.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { fill } from '../../../../core/texts/text.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { address, fillHtml, html } from '../../../../web/ui/html.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import { readMac } from '../../../../web/http/checked.ts'
import type { Route } from '../../../../web/http/route.ts'
import { CaptureFieldsSchema } from '../../rules/action.ts'
import { allowDisk, applyUpsert, flashAgain } from '../../rules/operator-edits.ts'
import type { Machine } from '../../rules/machine.ts'
import type { MachineUpsert } from '../../rules/upsert.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import type { PageContext } from '../frame/page-context.ts'
import { buttonRoute, formRoute } from '../../../../web/ui/page-routes.ts'
import { isAsked, renderRemoval } from '../frame/question.ts'
import { readCapture, typedCapture } from './capture-card.ts'
import { renderDiskQuestion } from './disk-question.ts'
import {
  describeRefusal,
  EMPTY,
  FIELDS,
  fingerprint,
  isExpected,
  isTyped,
  parseConsole,
  parseForm,
  readValues,
  WRONG_FIELD,
  type FormRefusal,
} from './machine-form.ts'
import { isArmed, nameOf, viewMachine, type MachineView } from '../view/machine-view.ts'
import { renderFlashQuestion } from './flash-question.ts'
import { machinePath } from '../view/machine-row.ts'

const t = PAGES.machine

/** Buttons without parameters. `flash` and `boot-disk` ask first. */
const BUTTONS = ['refresh', 'lock', 'unlock'] as const

export const machinePosts = (context: PageContext): readonly Route[] => [
  formRoute('/ui/machines/:mac', (event, form) => save(context, event, form)),
  formRoute('/ui/machines/:mac/delete', (event, form) =>
    isAsked(form) ? askDeletion(context, event) : remove(context, event),
  ),
  formRoute('/ui/machines/:mac/do/flash', (event, form) => flash(context, event, form)),
  formRoute('/ui/machines/:mac/do/boot-disk', (event, form) => bootDisk(context, event, form)),
  buttonRoute('/ui/machines/:mac/do/disarm', (event) =>
    act(context, event, readMac(event), 'mode', { saved: 1 }, { boot_mode: 'ipxe-exit' }),
  ),
  formRoute('/ui/machines/:mac/do/first-boot', (event, form) => {
    const parameters = { first_boot: form.get('first_boot') || null }
    return act(context, event, readMac(event), 'first-boot', { saved: 1 }, parameters)
  }),
  formRoute('/ui/machines/:mac/do/capture', (event, form) => capture(context, event, form)),
  buttonRoute('/ui/machines/:mac/do/cancel-capture', (event) =>
    act(context, event, readMac(event), 'cancel-capture', { uncaptured: 1 }),
  ),
  ...BUTTONS.map((action) =>
    buttonRoute(`/ui/machines/:mac/do/${action}`, (event) =>
      act(context, event, readMac(event), action, { saved: 1 }),
    ),
  ),
]

async function askDeletion(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const machine = await find(context, event)
  const { mac } = machine
  return await context.show(event, {
    title: fill(t.deletion.pageTitle, { name: nameOf(machine) }),
    section: '/ui/machines',
    trail: html`<a href="/ui/machines">${t.page.trail}</a>`,
    body: renderRemoval({
      title: fillHtml(t.deletion.title, { name: html`<bdi>${nameOf(machine)}</bdi>` }),
      body: html`<p>${fillHtml(t.deletion.question, { mac: html`<code>${mac}</code>` })}</p>`,
      action: event.url.pathname,
      cancel: machinePath(mac),
      button: t.deletion.button,
    }),
  })
}

async function remove({ site }: PageContext, event: H3Event): Promise<HTTPResponse> {
  const mac = readMac(event)
  const isGone = await site.fleet.remove(mac, site.by(event))
  return goTo(event, address('/ui/machines', isGone ? { deleted: mac } : { missing: mac }))
}

/** Saves the form; one of ours asks first where a disk would be flashed. */
async function save(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const values = readValues(form, EMPTY)
  const typed = Object.fromEntries(FIELDS.map((name) => [name, values[name]]))
  const query = { back: form.get('back') }
  const fail = ({ error, text, field }: FormRefusal) => {
    const wrong = field === null ? {} : { [WRONG_FIELD]: field }
    const refused = { error, text, typed: { ...typed, ...wrong }, query }
    return goBack(site, event, machinePath(mac), refused)
  }
  const parsed = parseForm(values, { hasName: form.has('name') })
  if (!parsed.ok) return fail(parsed.refusal)
  const before = await site.machines.find(mac)
  const armed = before === null ? null : armedBy(context, event, before, parsed.value)
  const confirm = form.get('confirm')
  if (armed !== null && confirm !== null) {
    const refusal = refusalOf(confirm, armed)
    if (refusal !== undefined) return ask(context, event, armed, form, refusal)
  }
  const saved = await site.fleet.upsert(
    mac,
    parsed.value,
    site.by(event),
    isExpected(form.get('was')),
  )
  if (!saved.ok) {
    return fail(saved.refusal.why === 'stale' ? STALE : describeRefusal(saved.refusal.fields, []))
  }
  await saveConsole(context, event, saved.value, values.serial_console)
  await saveGrowth(context, event, saved.value, values.grow)
  if (confirm === null) return goTo(event, localPath(form.get('back'), '/ui/machines'))
  const note = armed === null ? { saved: 1 } : { armed: 1 }
  return goTo(event, address(machinePath(mac), { ...note, back: form.get('back') }))
}

const STALE: FormRefusal = { error: t.form.stale, text: t.form.stale, field: null }

/** The machine as it would be, when that flashes a disk which would not be flashed now. */
function armedBy(
  context: PageContext,
  event: H3Event,
  before: Machine,
  upsert: MachineUpsert,
): MachineView | null {
  const now = context.site.now().toISOString()
  const edited = applyUpsert(before, before.mac, upsert, now)
  if (!edited.ok) return null
  const isSame =
    before.boot_mode === upsert.boot_mode &&
    before.bty_image_ref === upsert.bty_image_ref &&
    before.target_disk_serial === upsert.target_disk_serial
  const after = viewMachine(edited.value, context.gather(context.site.contact(event)), null)
  return isArmed(edited.value) && !isSame ? after : null
}

/** Undefined: confirmed. Null: not asked yet. */
function refusalOf(confirm: string, { machine }: MachineView): string | null | undefined {
  if (confirm === 'ask') return null
  const typed = isTyped(confirm, machine.target_disk_serial ?? '')
  return typed.ok ? undefined : typed.refusal
}

async function ask(
  context: PageContext,
  event: H3Event,
  view: MachineView,
  form: URLSearchParams,
  error: string | null,
): Promise<HTTPResponse> {
  const { confirm: _, ...values } = Object.fromEntries(form)
  const { machine } = view
  return await context.show(event, {
    title: fill(t.flashQuestion.pageTitle, { name: nameOf(machine) }),
    section: '/ui/machines',
    body: renderFlashQuestion({ view, action: event.url.pathname, values, error }),
  })
}

async function flash(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const machine = await find(context, event)
  const next = flashAgain(machine, site.now().toISOString())
  if (!next.ok) return goBack(site, event, machinePath(machine.mac), { error: next.refusal })
  const view = viewMachine(next.value, context.gather(site.contact(event)), null)
  const refusal = refusalOf(form.get('confirm') ?? 'ask', view)
  // The question is about the machine as it was shown: a change since then asks again.
  const isSame = isExpected(form.get('was'))(machine)
  if (refusal === undefined && isSame)
    return act(context, event, machine.mac, 'flash', { armed: 1 })
  const error = refusal === undefined ? t.page.changed : refusal
  return ask(context, event, view, new URLSearchParams({ was: fingerprint(machine) }), error)
}

async function find({ site }: PageContext, event: H3Event): Promise<Machine> {
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, fill(t.page.missing, { mac }))
  return machine
}

/** Asks until the answer is about the machine as it is now. */
async function bootDisk(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const machine = await find(context, event)
  const { mac } = machine
  const allowed = allowDisk(machine, site.now().toISOString())
  if (!allowed.ok) return goBack(site, event, machinePath(mac), { error: allowed.refusal })
  const isSame = isExpected(form.get('was'))(machine)
  if (form.get('confirm') === 'yes' && isSame) {
    return act(context, event, mac, 'boot-disk', { disk: 1 })
  }
  const question = {
    view: context.view(machine, event),
    action: event.url.pathname,
    values: { was: fingerprint(machine) },
    error: isSame ? null : t.page.changed,
    isOpen: context.services.config.current().pxe.tokens === 'off',
  }
  return await context.show(event, {
    title: fill(t.diskQuestion.pageTitle, { name: nameOf(machine) }),
    section: '/ui/machines',
    body: renderDiskQuestion(question, context.clock()),
  })
}

async function capture(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const mac = readMac(event)
  const typed = readCapture(form)
  const fields = CaptureFieldsSchema.safeParse(typed)
  if (fields.success) return act(context, event, mac, 'capture', { captured: 1 }, fields.data)
  const refused = { error: t.capture.nameWrong, typed: typedCapture(typed), anchor: 'capture' }
  return goBack(context.site, event, machinePath(mac), refused)
}

async function act(
  context: PageContext,
  event: H3Event,
  mac: Mac,
  action: string,
  note: Readonly<Record<string, number>>,
  parameters: object = {},
): Promise<HTTPResponse> {
  const { site } = context
  const acted = await site.fleet.act(mac, { action, parameters }, site.by(event))
  if (acted.result === 'missing') throw refuse(404, fill(t.page.missing, { mac }))
  return acted.result === 'refused'
    ? goBack(site, event, machinePath(mac), { error: acted.reason })
    : goTo(event, address(machinePath(mac), note))
}

async function saveConsole(context: PageContext, event: H3Event, machine: Machine, text: string) {
  const serial_console = parseConsole(text)
  if (serial_console === null || serial_console === machine.serial_console) return
  const { site } = context
  const request = { action: 'console', parameters: { serial_console } }
  await site.fleet.act(machine.mac, request, site.by(event))
}

/** A post without the field leaves it as it is. */
async function saveGrowth(context: PageContext, event: H3Event, machine: Machine, text: string) {
  const grow = text === 'true'
  if (text === '' || grow === machine.grow) return
  const request = { action: 'grow', parameters: { grow } }
  await context.site.fleet.act(machine.mac, request, context.site.by(event))
}
