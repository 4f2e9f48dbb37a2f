/** What the page of a machine posts: its form, its buttons, its end. */
import type { H3Event, HTTPResponse } from 'h3'
import type { Mac } from '../../../../core/machine/mac.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { address } from '../../../../web/ui/html.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import { readMac } from '../../../../web/http/mac-param.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderFieldErrors } from '../../../../core/foundation/field-error.ts'
import { allowDisk, applyUpsert, flashAgain } from '../../rules/edit.ts'
import type { Machine } from '../../rules/machine.ts'
import type { MachineUpsert } from '../../rules/upsert.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import type { PageContext } from '../frame/page-context.ts'
import { renderDiskQuestion } from './disk-question.ts'
import {
  EMPTY,
  FIELDS,
  fingerprint,
  isExpected,
  isTyped,
  parseConsole,
  parseForm,
  readValues,
} from './machine-form.ts'
import { isArmed, nameOf, viewMachine, type MachineView } from '../view/machine-view.ts'
import { renderQuestion } from './flash-question.ts'
import { machinePath } from '../view/machine-row.ts'

/** Buttons without parameters. `flash` and `boot-disk` ask first. */
const BUTTONS = ['refresh', 'lock', 'unlock'] as const

export function machinePosts(context: PageContext): readonly Route[] {
  return [
    {
      method: 'POST',
      path: '/ui/machines/:mac',
      access: 'page',
      takes: 'form',
      handle: (event, form) => save(context, event, form),
    },
    {
      method: 'POST',
      path: '/ui/machines/:mac/delete',
      access: 'page',
      async handle(event) {
        const mac = readMac(event)
        const isGone = await context.site.fleet.remove(mac, context.site.by(event))
        return goTo(event, address('/ui/machines', isGone ? { deleted: mac } : { missing: mac }))
      },
    },
    {
      method: 'POST',
      path: '/ui/machines/:mac/do/flash',
      access: 'page',
      takes: 'form',
      handle: (event, form) => flash(context, event, form),
    },
    {
      method: 'POST',
      path: '/ui/machines/:mac/do/boot-disk',
      access: 'page',
      takes: 'form',
      handle: (event, form) => bootDisk(context, event, form),
    },
    ...BUTTONS.map((action): Route => ({
      method: 'POST',
      path: `/ui/machines/:mac/do/${action}`,
      access: 'page',
      handle: (event) => act(context, event, readMac(event), action, { saved: 1 }),
    })),
  ]
}

/** Saved as it was posted; a form of ours asks first where a disk would be written. */
async function save(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const values = readValues(form, EMPTY)
  const typed = Object.fromEntries(FIELDS.map((name) => [name, values[name]]))
  const fail = (error: string) =>
    goBack(site, event, machinePath(mac), { error, typed, query: { back: form.get('back') } })
  const parsed = parseForm(values)
  if (!parsed.ok) return fail(parsed.refusal)
  const before = await site.machines.find(mac)
  const armed = before === null ? null : armedBy(context, event, before, parsed.value)
  const confirm = form.get('confirm')
  if (armed !== null && confirm !== null) {
    const refusal = refusalOf(confirm, armed)
    if (refusal !== undefined) return ask(context, event, armed, form, refusal)
  }
  const made = await site.fleet.upsert(
    mac,
    parsed.value,
    site.by(event),
    isExpected(form.get('was')),
  )
  if (!made.ok) {
    return fail(
      made.refusal.why === 'stale'
        ? 'The machine was changed meanwhile. What you entered is still here: look at it, and save again.'
        : `validation failed: ${renderFieldErrors(made.refusal.fields)}`,
    )
  }
  await saveConsole(context, event, made.value, values.serial_console)
  if (confirm === null) return goTo(event, localPath(form.get('back'), '/ui/machines'))
  const note = armed === null ? { saved: 1 } : { armed: 1 }
  return goTo(event, address(machinePath(mac), { ...note, back: form.get('back') }))
}

/** The machine as it would be, when that has a disk written which was not to be written before. */
function armedBy(
  context: PageContext,
  event: H3Event,
  before: Machine,
  upsert: MachineUpsert,
): MachineView | null {
  const now = context.site.now().toISOString()
  const made = applyUpsert(before, before.mac, upsert, now)
  if (!made.ok) return null
  const isSame =
    before.boot_mode === upsert.boot_mode &&
    before.bty_image_ref === upsert.bty_image_ref &&
    before.target_disk_serial === upsert.target_disk_serial
  const after = viewMachine(made.value, context.gather(context.site.contact(event)), null)
  return isArmed(made.value) && !isSame ? after : null
}

/** Undefined: go on. Null: ask for the first time. */
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
    title: `Arm ${nameOf(machine)}`,
    section: '/ui/machines',
    body: renderQuestion({ view, action: event.url.pathname, values, error }),
  })
}

async function flash(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const wish = flashAgain(machine, site.now().toISOString())
  if (!wish.ok) return goBack(site, event, machinePath(mac), { error: wish.refusal })
  const view = viewMachine(wish.value, context.gather(site.contact(event)), null)
  const refusal = refusalOf(form.get('confirm') ?? 'ask', view)
  if (refusal !== undefined) {
    // The question names what is there now; who changes it meanwhile is asked again.
    return ask(context, event, view, new URLSearchParams({ was: fingerprint(machine) }), refusal)
  }
  if (!isExpected(form.get('was'))(machine)) {
    return ask(
      context,
      event,
      view,
      new URLSearchParams({ was: fingerprint(machine) }),
      'The machine was changed meanwhile: look again.',
    )
  }
  return act(context, event, mac, 'flash', { armed: 1 })
}

/** Asks until the answer is about the machine as it is now. */
async function bootDisk(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const allowed = allowDisk(machine, site.now().toISOString())
  if (!allowed.ok) return goBack(site, event, machinePath(mac), { error: allowed.refusal })
  const isSame = isExpected(form.get('was'))(machine)
  if (form.get('confirm') === 'yes' && isSame)
    return act(context, event, mac, 'boot-disk', DISK_NEXT)
  const question = {
    view: context.view(machine, event),
    action: event.url.pathname,
    values: { was: fingerprint(machine) },
    error: isSame ? null : 'The machine was changed meanwhile: look again.',
    isOpen: context.services.config.current().pxe.tokens === 'off',
  }
  return await context.show(event, {
    title: `Boot the disk of ${nameOf(machine)}`,
    section: '/ui/machines',
    body: renderDiskQuestion(question, context.clock()),
  })
}

const DISK_NEXT = { disk: 1 }

async function act(
  context: PageContext,
  event: H3Event,
  mac: Mac,
  action: string,
  note: Readonly<Record<string, number>>,
): Promise<HTTPResponse> {
  const { site } = context
  const acted = await site.fleet.act(mac, { action, parameters: {} }, site.by(event))
  if (acted.result === 'missing') throw refuse(404, `no machine record for ${mac}`)
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
