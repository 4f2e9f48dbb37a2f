/** The routes of booting machines: script and plan. Open to all, and never an error that strands iPXE. */
import type { H3Event } from 'h3'
import { after, recover, type Eventual } from '../../kit/foundation/eventual.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import { renderExit } from '../../fleet/boot/rules/boot-script.ts'
import { renderBootstrap } from '../../fleet/boot/rules/bootstrap.ts'
import { decideGrubServer, renderGrubConfig } from '../../fleet/boot/rules/grub-config.ts'
import { isInfiniBand, isStation, parseMac, type Mac } from '../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { keptJson, text, type Answer } from '../../kit/web/answers/answers.ts'
import type { Site } from './site.ts'
import type { Contact } from './transition.ts'
import { readAddress, readMac } from '../../kit/web/answers/checked.ts'
import { createContactRecorder } from './contacts.ts'
import type { Route } from '../../kit/web/answers/route.ts'
import { leaveStalled } from './run-ends.ts'

/** Where GRUB looks on the server that firmware loaded it from. */
const GRUB_CONFIG = '/grub/grub.cfg'

function createHandlers(site: Site) {
  const { line, metrics } = site
  const recordContact = createContactRecorder(site)

  function offerScript(mac: Mac, contact: Contact): Eventual<Answer> {
    const decide = (machine: MachineBase) => line.decideBoot(machine, contact)
    return after(recordContact(mac, contact, decide), (decided) =>
      after(leaveStalled(site, mac, contact), () => {
        // Who is not let in boots its own disk.
        const { mode, offer } = decided ?? { mode: 'none', offer: 'not-admitted' }
        const script = decided?.script ?? exitOf(contact)
        metrics.count('flasher_pxe_requests_total', { mode, offer })
        return text(script)
      }),
    )
  }

  function answerScript(event: H3Event, contact: Contact): Eventual<Answer> {
    // Boot loaders stop at an error, and this one could never be set to anything else.
    if (isInfiniBand(readAddress(event))) {
      return text(exitOf(contact))
    }
    const mac = readMac(event)
    const work = () =>
      event.req.method === 'HEAD'
        ? text(previewScript(site, mac, contact))
        : offerScript(mac, contact)
    return recover(work, (error) => {
      // Boot loaders stop at an error of ours, with nobody there to type: the box boots its own disk instead.
      site.log.error(`script for ${mac}: ${renderError(error)}`)
      metrics.count('flasher_pxe_requests_total', { mode: 'none', offer: 'fault' })
      return text(exitOf(contact))
    })
  }

  function answerPlan(event: H3Event): Eventual<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const decide = (machine: MachineBase) => line.decidePlan(machine, contact)
    // What the cache has now is what the machine will get.
    const renewed = after(site.admitMachine(mac, 'plan', contact), () => site.catalog.renew?.())
    const recorded = after(renewed, () => recordContact(mac, contact, decide))
    return after(recorded, (decided) => {
      const { plan, mode } = decided ?? decide(line.discover(mac, contact.now))
      metrics.count('flasher_plan_requests_total', { mode })
      return keptJson(plan)
    })
  }

  return { answerScript, answerPlan }
}

export function pxeRoutes(site: Site): readonly Route[] {
  const { answerScript, answerPlan } = createHandlers(site)
  return [
    {
      method: 'GET',
      path: '/pxe-bootstrap.ipxe',
      access: 'open',
      doc: { summary: 'The script that an iPXE binary chains to first', answers: { 200: TEXT } },
      handle: (event) => text(renderBootstrap(site.contact(event).baseUrl, readOwnMac(event))),
    },
    {
      method: 'GET',
      path: '/pxe/:mac',
      access: 'open',
      doc: {
        summary: "The machine's boot script; a machine that is new is discovered",
        query: {
          buildarch: "iPXE's ${buildarch}",
          platform: "iPXE's ${platform}",
          hostname: 'The host name that DHCP gave it; it is shown until somebody names the machine',
        },
        answers: { 200: TEXT },
        isNeverMissing: true,
      },
      handle: (event) => answerScript(event, site.contact(event)),
    },
    {
      method: 'GET',
      path: '/pxe/:mac.grub',
      access: 'open',
      doc: {
        summary: "The same decision as a script of Debian's signed GRUB, for Secure Boot",
        query: {
          buildarch: "GRUB's $grub_cpu",
          platform: "GRUB's $grub_platform",
          server: 'Host and port by which GRUB reaches this server: its Host header has no port',
          offered: 'What the script before has offered in this boot; the same again is no new boot',
        },
        answers: { 200: TEXT },
        isNeverMissing: true,
      },
      handle: (event) => answerScript(event, readGrubContact(site, event)),
    },
    {
      method: 'GET',
      path: GRUB_CONFIG,
      access: 'open',
      doc: {
        summary: 'The configuration of the signed GRUB: it asks for the script of its machine',
        answers: { 200: TEXT },
      },
      handle: (event) => text(renderGrubConfig(readGrubContact(site, event).loader)),
    },
    {
      method: 'GET',
      path: '/pxe/:mac/plan',
      answersHead: false,
      access: 'open',
      doc: {
        summary: 'What the live environment does with this machine',
        answers: { 200: 'Plan' },
        refuses: [401],
        isNeverMissing: true,
      },
      handle: answerPlan,
    },
  ]
}

function readGrubContact(site: Site, event: H3Event) {
  const loader = decideGrubServer(event.url.searchParams.get('server'), site.peer(event).host)
  const baseUrl = site.settings().publicUrl ?? `http://${loader}`
  return { ...site.contact(event), baseUrl, loader }
}

const exitOf = ({ loader = null }: Contact) => renderExit(loader)

/** For its headers: the decision is made, and nothing follows from it. */
function previewScript({ line, machines }: Site, mac: Mac, contact: Contact): string {
  const known = machines.peek(mac)
  if (known === null && !isStation(mac)) return exitOf(contact)
  return line.decideBoot(known ?? line.discover(mac, contact.now), contact).script
}

const TEXT = { type: 'string', contentMediaType: 'text/plain' }

/** Our own iPXE names the NIC that it came by; what any other says is ignored. */
function readOwnMac(event: H3Event): Mac | null {
  const named = parseMac(event.url.searchParams.get('mac') ?? '')
  return named.ok ? named.value : null
}
