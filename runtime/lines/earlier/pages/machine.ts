/** /ui/machines/{mac}: one machine, its form, its provisioning files, and the script that it would get. */
import type { H3Event, HTTPResponse } from 'h3'
import { hideBootTokens } from '../../../core/boot/boot-token.ts'
import { renderFieldErrors } from '../../../core/foundation/field-error.ts'
import { printable } from '../../../core/foundation/printable.ts'
import type { Mac } from '../../../core/machine/mac.ts'
import { seeOther } from '../../../web/http/answers.ts'
import { readMac } from '../../../web/http/checked.ts'
import { refuse } from '../../../web/http/faults.ts'
import { banner, card, copyable, copyBlock, factList } from '../../../web/ui/elements.ts'
import { postButton, radioCards, selectField, textField } from '../../../web/ui/fields.ts'
import { address, html, type Content, type Html } from '../../../web/ui/html.ts'
import { renderTime } from '../../../web/ui/times.ts'
import type { Route } from '../../../web/http/route.ts'
import { BOOT_POLICIES, MACHINE_PROVISIONING, type Machine } from '../rules/machine.ts'
import { findMissing, parseProvisionFile, type ProvisionFile } from '../rules/provisioning.ts'
import { machinePath } from './frame/machine-row.ts'
import {
  buttonRoute,
  formRoute,
  goBack,
  messageOf,
  pageRoute,
  type PageContext,
} from './frame/page-context.ts'
import { provisioningCard } from './provision.ts'
import { workflowCard } from './workflow.ts'

const PATH = '/ui/machines/:mac'

export const machinePages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
  formRoute(PATH, (event, form) => save(context, event, form)),
  buttonRoute(`${PATH}/delete`, (event) => remove(context, event)),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site, services } = context
  const mac = readMac(event)
  const machine = site.machines.peek(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const images = (await services.shelf.list()).map(({ name }) => name)
  const kept = await listKept(context, mac)
  return await context.show(event, {
    title: printable(machine.hostname ?? mac),
    section: '/ui/machines',
    live: address('/events/machines', { q: `mac:${mac}` }),
    trail: html`<a href="/ui/machines">Machines</a>`,
    messages: html`${messageOf(context, event)}${
      event.url.searchParams.has('saved') ? banner('done', 'Saved.') : null
    }${renderWarnings(machine, images, kept)}`,
    body: html`<div class="columns">
      <div>
        ${card({ title: 'Configuration', id: 'intent', body: renderForm(machine, images) })}
        ${await provisioningCard(context, machine, kept)}
      </div>
      <div>
        ${renderFacts(context, machine)}${workflowCard(context, machine)}
        ${renderScript(context, machine, event)}${renderDelete(mac)}
      </div>
    </div>`,
  })
}

async function listKept({ services }: PageContext, mac: Mac): Promise<ReadonlySet<ProvisionFile>> {
  const names = await services.files.list(mac)
  return new Set(names.map(parseProvisionFile).filter((name) => name !== null))
}

/** What keeps the next flash from being completed. */
function renderWarnings(
  { boot_policy, image, provisioning_mode, failure }: Machine,
  images: readonly string[],
  kept: ReadonlySet<ProvisionFile>,
): Content {
  if (boot_policy !== 'flash') return null
  const missing = findMissing(provisioning_mode, kept)
  const warnings = [
    image === null ? 'No image is assigned, so the machine boots its own disk.' : null,
    image !== null && !images.includes(image)
      ? `${printable(image)} is not in the image folder, so the flash cannot start.`
      : null,
    missing === null ? null : `The mode ${provisioning_mode} needs ${missing}: add it below.`,
    failure === null ? null : `The last flash failed: ${failure.reason ?? 'no reason was given'}.`,
  ]
  return warnings.map((text) => (text === null ? null : banner('needs-you', text)))
}

const POLICIES = {
  local: { title: 'Boot its own disk', text: 'Nothing is written.' },
  flash: {
    title: 'Flash at every network boot',
    text: 'Erases the disk of the machine. The policy stays until you change it.',
  },
  tui: {
    title: 'Ask at the machine',
    text: 'Starts the live system with its menu for the person in front of it.',
  },
} as const

const renderForm = (machine: Machine, images: readonly string[]): Html =>
  html`<form method="post" action="${machinePath(machine.mac)}">
    ${radioCards({
      name: 'boot_policy',
      legend: 'Next network boot',
      value: machine.boot_policy,
      cards: BOOT_POLICIES.map((value) => ({ value, ...POLICIES[value] })),
    })}
    ${selectField({
      name: 'image',
      label: 'Image',
      value: machine.image ?? '',
      options: [
        { value: '', text: 'none' },
        ...[...new Set([...images, ...(machine.image === null ? [] : [machine.image])])].map(
          (name) => ({ value: name, text: printable(name) }),
        ),
      ],
    })}
    ${selectField({
      name: 'provisioning_mode',
      label: 'After the flash',
      value: machine.provisioning_mode,
      options: MACHINE_PROVISIONING.map((value) => ({ value, text: value })),
      hint: 'cijoe needs a live system that has cijoe; cijoe-online runs from this server.',
    })}
    ${textField({
      name: 'hostname',
      label: 'Host name',
      value: machine.hostname ?? '',
      maxLength: 253,
      hint: 'Where the machine answers once it is flashed.',
    })}
    ${textField({
      name: 'cijoe_workflow_ref',
      label: 'cijoe workflow on this server',
      value: machine.cijoe_workflow_ref ?? '',
      maxLength: 1024,
      mono: true,
      hint: 'An absolute path; for cijoe-online.',
    })}
    <button class="primary">Save</button>
  </form>`

function renderFacts(context: PageContext, machine: Machine): Html {
  const clock = context.clock()
  const { mac, last_seen_ip: ip } = machine
  return card({
    title: 'Identity',
    body: factList([
      ['MAC', copyable(mac)],
      ['Address', ip === null ? null : copyable(ip)],
      ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
      ['Discovered', renderTime(machine.discovered_at, clock, 'added manually')],
      ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
    ]),
  })
}

const renderDelete = (mac: Mac): Html =>
  html`<details class="card">
    <summary>Delete this machine</summary>
    <p class="dim">
      Its configuration and provisioning files are deleted. The machine reappears as discovered when
      it next boots from the network.
    </p>
    ${postButton({ action: `${machinePath(mac)}/delete`, label: `Delete ${mac}`, tone: 'danger' })}
  </details>`

/** As the machine would get it now, without its token, which is secret. */
function renderScript({ site }: PageContext, machine: Machine, event: H3Event): Html {
  const { script } = site.line.decideBoot(machine, site.contact(event))
  return card({
    title: 'Boot script',
    id: 'script',
    body: copyBlock(hideBootTokens(script), 'Boot script'),
  })
}

async function save(context: PageContext, event: H3Event, form: URLSearchParams): Promise<unknown> {
  const { fleet, by } = context.site
  const mac = readMac(event)
  const saved = await fleet.upsert(mac, Object.fromEntries(form), by(event))
  const here = machinePath(mac)
  if (saved.ok) return seeOther(address(here, { saved: 1 }))
  const { refusal } = saved
  const why = refusal.why === 'fields' ? renderFieldErrors(refusal.fields) : 'it has changed'
  const back = context.site.machines.peek(mac) === null ? '/ui/machines' : here
  return goBack(context, event, back, `Not saved: ${why}.`)
}

async function remove({ site }: PageContext, event: H3Event): Promise<unknown> {
  const mac = readMac(event)
  await site.fleet.remove(mac, site.by(event))
  return seeOther(address('/ui/machines', { deleted: mac }))
}
