/** Current line: its rules about machines, in the shape that the shared server asks for. */
import { parseBootToken, renderBootToken } from '../../core/boot/boot-token.ts'
import { renderBoot, renderExit, type BootDecision, type LiveSets } from '../../core/boot/boot.ts'
import type { CatalogEntry } from '../../core/catalog/catalog.ts'
import type { Mac } from '../../core/machine/mac.ts'
import { accept, refuse } from '../../core/foundation/result.ts'
import type { Secret } from '../../services/access/secret.ts'
import type { Action, ServerLine } from '../../web/fleet/line.ts'
import type { Contact } from '../../web/fleet/transition.ts'
import type { FlashGate } from './flash-gate.ts'
import { ACTIONS, type MachineAction } from './rules/action.ts'
import { decideBoot } from './rules/boot.ts'
import * as contacts from './rules/contact.ts'
import { applyUpsert } from './rules/edit.ts'
import { parseInventory } from './rules/inventory.ts'
import { isUnassigned, toWire, type Machine } from './rules/machine.ts'
import * as notes from './rules/machine-events.ts'
import { decidePlan, renderPlan } from './rules/plan.ts'
import { noteArmer, originOf, whoseEnd } from './rules/run.ts'
import { SCHEMAS } from './rules/schema.ts'
import type { PxeRules, Surroundings } from './rules/surroundings.ts'
import {
  decideTokenMatch,
  decideRequest,
  isLateHardware,
  planToken,
  TOKEN_REFUSALS,
  type ShownToken,
  type TokenRules,
} from './rules/token.ts'
import { parseUpsert } from './rules/upsert.ts'

/** Getters that answer from memory, at each contact anew. */
interface MachineLineDependencies {
  findImage(ref: string): CatalogEntry | null
  sets(): LiveSets
  settings(): PxeRules & TokenRules
  readonly gate: Omit<FlashGate, 'count'>
  /** Signs what machines show that were booted from here. */
  readonly bootKey: Pick<Secret, 'sign' | 'verify'>
}

/** What of a line is about machines alone; pages and passwords are elsewhere. */
type MachineLine = Omit<
  ServerLine<Machine>,
  | 'match'
  | 'renderRow'
  | 'renderBar'
  | 'renderLogin'
  | 'renderError'
  | 'renderDocument'
  | 'checkPassword'
>

/** What `decideBoot` and `decidePlan` ask for, at this contact. */
export const gatherSurroundings = (
  parts: Pick<MachineLineDependencies, 'findImage' | 'sets' | 'settings' | 'gate'>,
  { baseUrl, now }: Pick<Contact, 'baseUrl' | 'now'>,
): Surroundings => ({
  base: baseUrl,
  now,
  findImage: parts.findImage,
  sets: parts.sets(),
  settings: parts.settings(),
  placeOf: (machine) => parts.gate.placeOf(machine, now),
})

export function createMachineLine(parts: MachineLineDependencies): MachineLine {
  const readToken = (mac: Mac, { bearer, now }: Contact): ShownToken =>
    bearer === null ? null : parseBootToken(bearer, { mac, now }, parts.bootKey.verify)
  const matchToken = (machine: Machine, contact: Contact) =>
    decideTokenMatch(machine, readToken(machine.mac, contact), parts.settings().tokens)
  /** The record is the one after the offer: the offer may begin a cycle. */
  function proving(decision: BootDecision, machine: Machine, now: string): BootDecision {
    const token = decision.kind === 'to-live' ? planToken(machine, parts.settings(), now) : null
    if (decision.kind !== 'to-live' || token === null) return decision
    return { ...decision, token: renderBootToken(machine.mac, token, parts.bootKey.sign) }
  }
  /** What a contact makes of the machine; nobody has heard of it yet. */
  function offer(machine: Machine, contact: Contact) {
    const { now, query } = contact
    const seen = contacts.sight(machine, now, query['buildarch'] ?? null)
    const ruling = decideBoot(seen, gatherSurroundings(parts, contact))
    const { decision, rule, reason } = ruling
    const header = { mac: seen.mac, mode: seen.boot_mode, rule, reason }
    const offered = contacts.noteOffer(seen, ruling, now)
    return { seen, ruling, offered, script: renderBoot(proving(decision, offered, now), header) }
  }
  return {
    discover: contacts.discover,
    parseUpsert(body, before, { mac, now }) {
      const parsed = parseUpsert(body)
      return parsed.ok ? applyUpsert(before, mac, parsed.value, now) : parsed
    },
    parseInventory,
    toWire,
    listDisks: ({ known_disks }) => known_disks,
    isUnassigned,
    modeOf: ({ boot_mode }) => boot_mode,
    describe: notes.describe,
    renderExit: () => renderExit('nothing is known or decided about this machine'),
    decideBoot(machine, contact) {
      const { seen, ruling, offered, script } = offer(machine, contact)
      parts.gate.noteOffer(offered, ruling, contact.now)
      return {
        machine: offered,
        notes: notes.noteScript(seen, ruling),
        script,
        offer: ruling.rule,
      }
    },
    previewScript: (machine, contact) => offer(machine, contact).script,
    admit({ mac, machine, wish }, contact) {
      const { tokens } = parts.settings()
      if (tokens === 'off') return accept([])
      const match = decideTokenMatch(machine, readToken(mac, contact), tokens)
      if (!match.ok) return refuse(TOKEN_REFUSALS[match.refusal])
      const granted =
        machine === null ? match : decideRequest(machine, match.value, wish, contact.now)
      if (!granted.ok) return refuse(TOKEN_REFUSALS[granted.refusal])
      const isNoted = match.value === 'unproven' && wish === 'plan' && machine !== null
      return accept(isNoted ? [notes.noteUnproven(mac)] : [])
    },
    decidePlan(machine, contact) {
      const ruling = decidePlan(machine, gatherSurroundings(parts, contact))
      if (ruling.plan.mode === 'flash') parts.gate.notePlanned(machine.mac)
      else parts.gate.release(machine.mac)
      return {
        machine: contacts.notePlan(machine, ruling.plan, contact.now),
        notes: notes.notePlanned(machine, ruling),
        plan: renderPlan(ruling.plan, contact.baseUrl),
        mode: ruling.plan.mode,
      }
    },
    noteArmer,
    afterRunBegan(machine, { now }) {
      const after = contacts.noteRunBegan(machine, now)
      if (after !== machine) parts.gate.notePlanned(machine.mac)
      return { machine: after, notes: [] }
    },
    noteRunStopped: (mac) => parts.gate.release(mac),
    originOf: (machine) => originOf(machine, parts.findImage),
    whoseEnd(machine, contact) {
      const match = matchToken(machine, contact)
      return whoseEnd(machine, match.ok && match.value === 'before')
    },
    afterBootFile(machine, name, { now }) {
      const after = contacts.noteBootFile(machine, now)
      return { machine: after, notes: notes.noteArmed(machine, after, name) }
    },
    afterInventory(machine, { disks, hardware }, contact) {
      const { now } = contact
      const match = matchToken(machine, contact)
      // The flash is over, and so are the disks as they were before it.
      if (match.ok && isLateHardware(machine, match.value, now)) {
        return { machine, notes: hardware === null ? [] : [notes.noteLateHardware(machine)] }
      }
      return {
        machine: contacts.noteDisks(machine, disks, now),
        notes: [notes.noteInventory(machine, disks, hardware !== null)],
      }
    },
    afterFlash(machine, contact) {
      const match = matchToken(machine, contact)
      const isFormer = match.ok && match.value === 'before'
      const after = contacts.noteDone(machine, contact.now, isFormer)
      return { machine: after, notes: after === machine ? [] : [notes.noteFlashed(machine)] }
    },
    afterFailure(machine, reason, contact) {
      const match = matchToken(machine, contact)
      // What is under way now did not fail.
      const isOld = match.ok && match.value === 'before' && machine.cycle.offers > 0
      return {
        machine: isOld ? machine : contacts.noteFailure(machine, reason, contact.now),
        notes: [notes.noteFlashFailed(machine, reason)],
      }
    },
    actions: Object.fromEntries(
      Object.entries(ACTIONS).map(([name, action]) => [name, toAction(name, action)]),
    ),
    schemas: SCHEMAS,
  }
}

const toAction = (name: string, action: MachineAction): Action<Machine> => ({
  title: action.title,
  scope: action.scope,
  check: (parameters) => action.check(parameters),
  apply(machine, parameters, { now }) {
    const applied = action.apply(machine, parameters, now)
    if (!applied.ok) return applied
    const summary = `${machine.mac} ${action.past}`
    const details = { action: name, ...notes.describe(applied.value) }
    return accept({
      machine: applied.value,
      notes: [{ kind: `machine.${name}`, summary, details }],
    })
  },
})
