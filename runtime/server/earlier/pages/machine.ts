/** /ui/machines/{mac}: one machine, its form, its provisioning files, and the script that it would get. */
import { hideBootTokens } from '#fleet/boot/rules/boot-decision.ts'
import { renderFieldErrors } from '#kit/foundation/field-error.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, copyable, copyBlock, factList, refreshOnNews } from '#kit/web/ui/elements.ts'
import { hidden, radioCards, selectField, textField } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { BOOT_POLICIES, decideArming, isArmed, type Machine } from '../rules/machine.ts'
import {
  findMissing,
  MACHINE_PROVISIONING,
  type ProvisionFile,
} from '#fleet/workflow/rules/online-workflow.ts'
import {
  machinePath,
  MACHINES_PATH,
  MACHINES_TRAIL,
  renderBar,
  renderStateBadge,
} from '#server/pages/machines/machines-list.ts'
import { opensQuestion, questionButton, showRemoval } from '#server/pages/question.ts'
import { askToArm } from './arming-question.ts'
import { nameOf, viewOf, type EarlierContext } from './machine-view.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { listKept, provisioningCard } from './provision.ts'

import { workflowCard } from './workflow.ts'

const PATH = `${MACHINES_PATH}/:mac`

export const MACHINE_PAGES = [
  pageAt(PATH, 'read', show),
  formAt(PATH, 'machines', save),
  removalAt(`${PATH}/delete`, 'machines', askDeletion, remove),
]

async function show(context: EarlierContext): Promise<Answer> {
  const { site, services } = context
  const mac = readMac(context.event)
  const machine = site.machines.peek(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const images = (await services.shelf.list()).map(({ name }) => name)
  const kept = await listKept(context, mac)
  return await context.show({
    title: printable(machine.hostname ?? mac),
    trail: MACHINES_TRAIL,
    updates: address('/events/machines', { q: `mac:${mac}` }),
    messages: html`${context.message()}${
      context.query.has('saved') ? banner('done', 'Saved.') : null
    }${renderWarnings(machine, images, kept)}`,
    body: html`<div class="columns">
      <div>
        ${renderNow(context, machine)}
        ${card({ title: 'Configuration', id: 'intent', body: renderForm(machine, images) })}
        ${await provisioningCard(context, machine, kept)}
      </div>
      <div>
        ${renderFacts(context, machine)}${workflowCard(context, machine)}
        ${renderScript(context, machine)}${renderDelete(mac)}
      </div>
    </div>`,
  })
}

function renderNow(context: EarlierContext, machine: Machine): Html {
  const { view, run } = viewOf(context, machine)
  return html`<div ${refreshOnNews('state', machinePath(machine.mac), 1000)}>
    ${card({
      title: renderStateBadge(view),
      body: html`<p class="sentence">${view.is}</p>
        ${renderOrder(machine)}
        <p class="dim">${view.next}</p>
        ${
          view.state === 'failed' || view.state === 'needs-you'
            ? html`<p><a class="button" href="#intent">Decide what it does next</a></p>`
            : null
        }
        ${run === null ? null : html`<div class="wide-bar">${renderBar(run)}</div>`}`,
    })}
  </div>`
}

/** The live system finds the disk, so none is named. */
function renderOrder(machine: Machine): Content {
  if (!isArmed(machine) || machine.image === null) return null
  return html`<p>
    <strong><bdi>${printable(machine.image)}</bdi></strong> → its only suitable disk
  </p>`
}

function renderWarnings(
  { boot_policy, image, provisioning_mode, disarmed_at }: Machine,
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
    missing === null ? null : `${provisioning_mode} needs ${missing}. Add it below.`,
    disarmed_at === null
      ? null
      : 'A backup of the server was restored, so this machine is disarmed. To arm it, save the policy Flash at every network boot.',
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
    text: 'Starts the live system, whose menu asks the person at the machine.',
  },
} as const

const AFTER = {
  none: 'Nothing more',
  'cloud-init': 'Set it up with cloud-init',
  cijoe: 'Run a workflow in the live system (cijoe)',
  'cijoe-online': 'Run a workflow from this server (cijoe-online)',
} as const

const renderForm = (machine: Machine, images: readonly string[]): Html =>
  html`<form ${opensQuestion(machinePath(machine.mac))}>
    ${hidden({ confirm: 'ask' })}
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
        { value: '', text: 'None' },
        ...[...new Set([...images, ...(machine.image === null ? [] : [machine.image])])].map(
          (name) => ({ value: name, text: printable(name) }),
        ),
      ],
    })}
    ${selectField({
      name: 'provisioning_mode',
      label: 'After the flash',
      value: machine.provisioning_mode,
      options: MACHINE_PROVISIONING.map((value) => ({ value, text: AFTER[value] })),
      hint: 'Workflows are run by cijoe, which must be installed where they run.',
    })}
    ${textField({
      name: 'hostname',
      label: 'Host name',
      value: machine.hostname ?? '',
      maxLength: 253,
      hint: 'The name or address of the flashed system, if you know it.',
    })}
    ${textField({
      name: 'cijoe_workflow_ref',
      label: 'Workflow on this server',
      value: machine.cijoe_workflow_ref ?? '',
      maxLength: 1024,
      mono: true,
      hint: 'Its absolute path, for a workflow that runs from this server.',
    })}
    <button class="primary">Save</button>
  </form>`

function renderFacts(context: EarlierContext, machine: Machine): Html {
  const clock = context.clock()
  const { mac, last_seen_ip: ip } = machine
  return card({
    title: 'Identity',
    body: factList([
      ['MAC', copyable(mac)],
      ['Address', ip === null ? null : copyable(ip)],
      ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
      ['Discovered', renderTime(machine.discovered_at, clock, 'added by hand')],
      ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
    ]),
  })
}

const renderDelete = (mac: Mac): Html =>
  html`<details class="card">
    <summary>Delete this machine</summary>
    <p class="dim">
      ${'Its configuration and provisioning files are deleted. The machine reappears as discovered when it next boots from the network.'}
    </p>
    ${questionButton({ action: `${machinePath(mac)}/delete`, label: 'Delete machine…', tone: 'danger' })}
  </details>`

/** Without its token, which is secret. */
function renderScript({ site, contact }: EarlierContext, machine: Machine): Html {
  const { script } = site.line.decideBoot(machine, contact())
  return card({
    title: 'Boot script',
    id: 'script',
    body: copyBlock(hideBootTokens(script), 'Boot script'),
  })
}

async function save(context: EarlierContext, form: URLSearchParams): Promise<Answer> {
  const { fleet, machines } = context.site
  const mac = readMac(context.event)
  const { confirm, ...fields } = Object.fromEntries(form)
  const isAsked = confirm !== undefined && confirm !== 'yes'
  const armed = isAsked ? foreseeArmed(context, fields) : null
  if (armed !== null) {
    const sent = Object.entries(fields).map(([name, value]) => [name, String(value)])
    return await askToArm(context, armed, Object.fromEntries(sent))
  }
  const saved = await fleet.upsert(mac, fields, context.by())
  const here = machinePath(mac)
  if (saved.ok) {
    // Saving equal values orders nothing, but answering the question does.
    const isOrder = confirm === 'yes' && machines.peek(mac)?.disarmed_at !== null
    if (isOrder) await fleet.act(mac, { action: 'flash', parameters: null }, context.by())
    return context.goTo(address(here, { saved: 1 }))
  }
  const { refusal } = saved
  const why = refusal.why === 'fields' ? renderFieldErrors(refusal.fields) : 'it has changed'
  const back = context.site.machines.peek(mac) === null ? MACHINES_PATH : here
  return context.goBack(back, { error: `Not saved: ${why}.` })
}

/** Null: the form does not newly erase a disk. */
function foreseeArmed(context: EarlierContext, fields: object): Machine | null {
  const { site } = context
  const mac = readMac(context.event)
  const before = site.machines.peek(mac)
  const by = { ...context.by(), at: site.now().toISOString() }
  const parsed = site.line.parseUpsert(fields, before, { mac, by })
  return parsed.ok && decideArming(before, parsed.value) ? parsed.value : null
}

async function askDeletion(context: EarlierContext): Promise<Answer> {
  const mac = readMac(context.event)
  const machine = context.site.machines.peek(mac)
  if (machine === null) throw refuse(404, `no machine record for ${mac}`)
  const name = printable(nameOf(machine))
  return await showRemoval(context, {
    title: `Delete ${name}`,
    trail: MACHINES_TRAIL,
    question: html`Delete <bdi>${name}</bdi>?`,
    body: html`<p>
      ${fillHtml('The record of {mac} is deleted with its configuration and provisioning files; its events and runs are kept. No disk is changed. The machine reappears as discovered when it next boots from the network.', { mac: html`<code>${mac}</code>` })}
    </p>`,
    cancel: machinePath(mac),
    button: 'Delete machine',
  })
}

async function remove({ site, event, by, goTo }: EarlierContext): Promise<Answer> {
  const mac = readMac(event)
  const isGone = await site.fleet.remove(mac, by())
  return goTo(address(MACHINES_PATH, isGone ? { deleted: mac } : { missing: mac }))
}
