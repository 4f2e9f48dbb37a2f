/** Current line: its rules about machines, behind the interface of the shared server. */
import {
  parseBootToken,
  renderBootToken,
  type BootDecision,
  type LiveSets,
} from '#fleet/boot/rules/boot-decision.ts'
import { renderBoot } from '#fleet/boot/rules/boot-script.ts'
import {
  NO_FEATURES,
  parseFeatures,
  decideIssue,
  renderSeedToken,
} from '#engine/first-boot/rules/seed.ts'
import { nameOrder, renderUploadToken } from '#engine/capture/rules/order.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { isPresigned } from '#kit/net/rules/image-location.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { ServerLine, Action } from '#server/routes/line.ts'
import type { Contact, ScriptTransition, Signal, Transition } from '#server/routes/transition.ts'
import { ACTIONS, type MachineAction } from './machines/rules/action.ts'
import { decideBoot, decideSlot } from './machines/rules/boot.ts'
import * as contacts from './machines/rules/contact.ts'
import {
  undoEdit,
  beginsOrder,
  hasFlashOrder,
  limitOrder,
  pauseOrder,
} from './machines/rules/disarming.ts'
import { applyRequest, resolveAction, type FindChannel } from './channels/rules/channel-order.ts'
import {
  hasUnfinishedFlash,
  isHalfWritten,
  isUnassigned,
  toWire,
  type Machine,
} from './machines/rules/machine.ts'
import * as events from './machines/rules/machine-events.ts'
import { decidePlan, renderPlan, renderUploadUrl, type Plan } from './machines/rules/plan.ts'
import type { CatalogEntry, CatalogSnapshot } from '#engine/catalog/rules/catalog.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import { replaceLoopback } from '#engine/catalog/rules/cache-entry.ts'
import { listSources } from '#engine/catalog/rules/near-caches.ts'
import type { QueuePosition } from './machines/rules/queue.ts'
import {
  decideOutcome,
  decideOwner,
  originOf,
  whoseEnd,
  rememberArmer,
} from './machines/rules/run.ts'
import {
  decideTokenMatch,
  decideRequest,
  planToken,
  TOKEN_REFUSALS,
  type ShownToken,
  type TokenRules,
  isLateHardware,
  type TokenMatch,
} from './machines/rules/token.ts'
import type { PxeRules, Surroundings } from './machines/rules/surroundings.ts'
import { parseUpsert } from './machines/rules/upsert.ts'
import { describeFlashed, describeFlashFailed } from '#fleet/machine/rules/flash-events.ts'
import type { Inventory } from '#engine/inventory/rules/machine.ts'
import { compareFields } from '#fleet/state/rules/event-table.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'
import { cancelUnfit, findOnceObstacle, findUnfit } from './machines/rules/once.ts'
import { isWaiting, renderTicket } from '#fleet/once/rules/once-order.ts'
import { BOOTS_ONCE } from './machines/rules/operator-edits.ts'
import type { CanSeeMachine } from './captures/rules/capture-owner.ts'

/** Getters answer from memory, anew at each contact. */
export interface LineDependencies
  extends ActionDependencies, Pick<Surroundings, 'findImage' | 'findTemplate' | 'recallMisfit'> {
  sets(): LiveSets
  settings(): PxeRules & TokenRules
  /** Null: it may flash now. Changes nothing. */
  placeOf(machine: Machine): QueuePosition | null
  hasRun(mac: Mac): boolean
  readonly bootKey: Pick<Secret, 'sign' | 'verify'>
  /** Signs upload tokens of captures; the cache has the same key. */
  readonly uploadKey: Pick<Secret, 'sign'>
  /** By a clock that is never set back; absent: the contact's. */
  isPast?(at: string): boolean
  /** For images from a registry or a bucket; null or absent: nowhere. */
  findOrigin?(image: CatalogEntry): string | null
  /** Why a machine is not armed with this image; absent: any image will do. */
  refuseImage?(image: CatalogEntry | null, machine: Machine): MaybePromise<string | null>
  /** Images that are asked about next. */
  expectImages?(images: readonly (CatalogEntry | null)[]): void
  /** Besides the one at `base`; absent: none. */
  otherServers?(base: string): readonly string[]
}

export const gatherSurroundings = (
  site: Omit<LineDependencies, 'bootKey' | 'uploadKey' | 'hasRun'>,
  { baseUrl, now }: Pick<Contact, 'baseUrl' | 'now'>,
): Surroundings => ({
  base: baseUrl,
  others: () => site.otherServers?.(baseUrl) ?? [],
  now,
  findImage: site.findImage,
  findTemplate: site.findTemplate,
  ...(site.findEntry === undefined ? {} : { findEntry: site.findEntry }),
  ...(site.recallMisfit === undefined ? {} : { recallMisfit: site.recallMisfit }),
  cacheUrl: site.cacheUrl(),
  sets: site.sets,
  settings: site.settings(),
  placeOf: site.placeOf,
  ...(site.isPast === undefined ? {} : { isPast: site.isPast }),
})

/** Avoids a walk through the catalog at each contact. */
export function createFinder(
  catalog: Pick<FollowedCatalog, 'snapshot'>,
): (ref: string) => CatalogEntry | null {
  let of: CatalogSnapshot | null = null
  let byRef = new Map<string, CatalogEntry>()
  return (ref) => {
    const present = catalog.snapshot()
    if (present !== of) {
      byRef = new Map(present.entries.map((entry) => [entry.ref, entry]))
      of = present
    }
    return byRef.get(ref) ?? null
  }
}

export function createMachineLine(site: LineDependencies): ServerLine<Machine> {
  const { settings, findImage, bootKey } = site
  const readToken = (mac: Mac, machine: Machine | null, { bearer, now }: Contact): ShownToken => {
    if (bearer === null) return null
    const isOpen = site.hasRun(mac) || (machine !== null && hasUnfinishedFlash(machine))
    return parseBootToken(bearer, { mac, now, isOpen }, bootKey.verify)
  }
  const keepPlan = createKeptAnswers<Readonly<Record<string, unknown>>>()
  const kept = { ...site, keepScript: createKeptAnswers<string>() }
  const matchToken = (machine: Machine, contact: Contact) =>
    decideTokenMatch(machine, readToken(machine.mac, machine, contact), settings().tokens)
  return {
    discover: contacts.discover,
    describe: (machine) => ({
      mode: machine.boot_mode,
      details: events.describe(machine),
      disks: machine.known_disks,
      isUnassigned: isUnassigned(machine),
    }),
    toWire,
    parseUpsert: createUpsertParser(site),
    admit({ mac, machine, request }, contact) {
      const { tokens } = settings()
      if (tokens === 'off') return LET_IN
      const match = decideTokenMatch(machine, readToken(mac, machine, contact), tokens)
      if (!match.ok) return refuse(TOKEN_REFUSALS[match.refusal])
      const granted =
        machine === null ? match : decideRequest(machine, match.value, request, contact.now)
      if (!granted.ok) return refuse(TOKEN_REFUSALS[granted.refusal])
      const isNoted = match.value === 'unproven' && request === 'plan' && machine !== null
      return isNoted ? accept([events.describeUnproven(mac)]) : LET_IN
    },
    isHalfWritten,
    decideBoot: (machine, contact) => offerBoot(kept, machine, contact),
    decidePlan(machine, contact) {
      const { query } = contact
      const features = query['features'] === undefined ? NO_FEATURES : parseFeatures(query)
      const ruling = decidePlan(machine, gatherSurroundings(site, contact), features)
      const { plan } = ruling
      const { mode } = plan
      const { baseUrl } = contact
      const after = contacts.rememberPlan(machine, plan, contact.now)
      // A plan with a ticket differs each time.
      const tickets = issueTickets(site, plan, after, contact)
      const sources = features.sources === true ? nameSources(site, plan, machine, contact) : []
      const near = renderNear(sources)
      return {
        machine: after,
        events: events.describePlanned(machine, ruling),
        slot: mode === 'flash' ? 'planned' : 'released',
        plan:
          tickets === null
            ? keepPlan(machine.mac, [baseUrl, ...Object.values(plan), ...sources], () =>
                renderPlan(plan, baseUrl, near),
              )
            : renderPlan(plan, baseUrl, { ...near, ...tickets }),
        mode,
      }
    },
    transition: (machine, signal, contact) =>
      applySignal(machine, signal, contact.now, () => matchToken(machine, contact)),
    describeRun(machine, contact, order = null) {
      const match = matchToken(machine, contact)
      const token = match.ok ? match.value : 'unproven'
      const which = whoseEnd(machine, decideOwner(machine, { token, order }))
      return { origin: originOf(machine, findImage), stamps: stampsOf(machine), ...which }
    },
    expectArming: (machines) =>
      site.expectImages?.(machines.map((machine) => findImage(machine?.bty_image_ref ?? ''))),
    refuseArming: (before, after) =>
      beginsOrder(before, after) && hasFlashOrder(after)
        ? (site.refuseImage?.(findImage(after.bty_image_ref ?? ''), after) ?? null)
        : null,
    nameOrder: ({ cycle }) => cycle.started_at,
    ...OF_RECORDS,
    actions: Object.fromEntries(
      Object.entries(ACTIONS).map(([name, action]) => [name, toAction(site, name, action)]),
    ),
  }
}

const OF_RECORDS = {
  labelsOf: ({ labels }: Machine) => labels,
  findOtherBoot: ({ once }: Machine) => (isWaiting(once) ? BOOTS_ONCE : null),
  decideOutcome,
  undo: undoEdit,
} as const

const createUpsertParser =
  (site: LineDependencies): ServerLine<Machine>['parseUpsert'] =>
  (body, before, { mac, by }) => {
    const parsed = parseUpsert(body)
    const unknown = parsed.ok ? findUnknownTemplate(site, parsed.value.first_boot) : null
    if (unknown !== null) return refuse([fieldError(['first_boot'], unknown)])
    const on = { mac, find: findIn(site), now: by.at }
    const applied = parsed.ok ? applyRequest(before, parsed.value, on) : parsed
    return applied.ok ? accept(sign(site.settings(), before, applied.value, by)) : applied
  }

const LET_IN = accept([])

/** The offer and the plan that led to its run. */
const stampsOf = ({ planned_at: plan_at, cycle: { offered_at: script_at } }: Machine) => ({
  script_at,
  plan_at,
})

/** The plan has an address and a token, never the content: plans are logged and shown. */
function issueTickets(
  { bootKey, uploadKey }: LineDependencies,
  plan: Plan,
  { mac, first_boot_taken_at: takenAt, capture }: Machine,
  { baseUrl, now }: Contact,
): Parameters<typeof renderPlan>[2] | null {
  if (plan.mode === 'flash' && plan.firstBoot === true) {
    const token = renderSeedToken(mac, decideIssue(takenAt, now), bootKey.sign)
    return { first_boot: { url: `${baseUrl}/pxe/${mac}/first-boot`, token } }
  }
  if (plan.mode !== 'capture' || capture === null) return null
  const issued = { order: nameOrder(mac, capture), issuedAt: epochOf(capture.planned_at ?? now) }
  const token = renderUploadToken(issued, { mac, name: plan.name }, uploadKey.sign)
  return { upload: { url: renderUploadUrl(plan.cacheUrl, baseUrl), token } }
}

/** Sources near the machine, which it tries before the address of the plan. */
function nameSources(
  { settings, cacheUrl, findOrigin }: LineDependencies,
  plan: Plan,
  { labels }: Machine,
  { ip, baseUrl }: Contact,
): readonly string[] {
  const { caches = [] } = settings()
  if (plan.mode !== 'flash') return []
  const origin = findOrigin?.(plan.image) ?? null
  if (caches.length === 0 && origin === null) return []
  const host = new URL(baseUrl).hostname
  const near = listSources(plan.image, { caches, cacheUrl: cacheUrl() }, { ip, labels })
  return [...near, ...(origin === null ? [] : [origin])].map((url) =>
    // A signature is for one host.
    isPresigned(url) ? url : replaceLoopback(url, host),
  )
}

const renderNear = (sources: readonly string[]) =>
  sources.length === 0 ? {} : { sources: sources.map((url) => ({ url })) }

type KeepScript = ReturnType<typeof createKeptAnswers<string>>

function offerBoot(
  site: LineDependencies & { readonly keepScript: KeepScript },
  before: Machine,
  contact: Contact,
): ScriptTransition<Machine> {
  const { now, query } = contact
  const sighted = contacts.takeBackOffer(contacts.sight(before, now, query), query)
  const unfit = findUnfit(sighted, query, site.bootKey.verify)
  const seen = unfit === null ? contacts.endOnce(sighted, now) : cancelUnfit(sighted, now)
  const ruling = decideBoot(seen, gatherSurroundings(site, contact))
  const { decision, rule, reason } = ruling
  const machine = contacts.rememberOffer(seen, ruling, now)
  const header = { mac: seen.mac, mode: seen.boot_mode, rule, reason }
  const { loader = null } = contact
  return {
    machine,
    events: [
      ...(unfit === null && seen !== sighted ? events.describeOnceEnd(seen, sighted.once) : []),
      ...(unfit === null ? [] : [events.describeOnceUnfit(seen, unfit, query)]),
      ...events.describeScript(seen, ruling, query['offered'] === decision.kind),
      ...(ruling.givesUpCapture ? events.listCaptureEnds(machine) : []),
    ],
    slot: decideSlot(ruling),
    script:
      decision.kind === 'to-disk'
        ? site.keepScript(
            seen.mac,
            [...Object.values(decision), ...Object.values(header), loader],
            () => renderBoot(decision, header, loader),
          )
        : renderBoot(withToken(site, decision, machine, now), header, loader),
    mode: seen.boot_mode,
    offer: rule,
    boots: decision.kind,
  }
}

/** `machine` is the record after the offer, which may begin a cycle. */
function withToken(
  { settings, bootKey }: LineDependencies,
  decision: BootDecision,
  machine: Machine,
  now: string,
): BootDecision {
  if (decision.kind === 'to-entry' && machine.once !== null)
    return { ...decision, ticket: renderTicket(machine.mac, machine.once, bootKey.sign) }
  const token = decision.kind === 'to-live' ? planToken(machine, settings(), now) : null
  if (decision.kind !== 'to-live' || token === null) return decision
  return { ...decision, token: renderBootToken(machine.mac, token, bootKey.sign) }
}

interface KeptAnswer<T> {
  readonly inputs: readonly unknown[]
  readonly answer: T
}

/** Some kilobytes each; a larger fleet renders more often. */
const MAX_KEPT = 10_000

/** Anew only for a changed input. `inputs`: all that `render` reads, compared by identity. */
export function createKeptAnswers<T>() {
  const kept = new Map<Mac, KeptAnswer<T>>()
  return (mac: Mac, inputs: readonly unknown[], render: () => T): T => {
    const known = kept.get(mac)
    if (known !== undefined && isSame(known.inputs, inputs)) return known.answer
    const answer = render()
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(mac, { inputs, answer })
    return answer
  }
}

const isSame = (a: readonly unknown[], b: readonly unknown[]) =>
  a.length === b.length && a.every((input, at) => input === b[at])

/** Called only where it matters. */
type MatchToken = () => ReturnType<typeof decideTokenMatch>

function applySignal(
  machine: Machine,
  signal: Signal,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  switch (signal.kind) {
    case 'inventory':
      return takeInventory(machine, signal.inventory, now, match)
    case 'boot-file': {
      const after = contacts.rememberBootFile(machine, now)
      return { machine: after, events: events.describeArmed(machine, after, signal.name) }
    }
    case 'run-began': {
      const after = contacts.rememberRunBegan(machine, now)
      return { machine: after, events: [], ...(after === machine ? {} : { slot: 'planned' }) }
    }
    case 'run-stopped':
      return {
        machine,
        events: signal.result === 'failed' ? [describeFlashFailed(machine, signal.reason)] : [],
        slot: 'released',
      }
    case 'capture-ended':
      return endCapture(machine, signal, now)
    case 'done':
      return takeDone(machine, signal, now, match)
    case 'failed':
      return takeFailure(machine, signal, now, match)
  }
}

function takeDone(
  machine: Machine,
  { order = null }: Pick<Extract<Signal, { kind: 'done' }>, 'order'>,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const owner = decideOwner(machine, { token: tokenOf(match), order })
  const after = contacts.rememberDone(machine, now, owner)
  // The same end was reported and recorded before.
  const isNews = after.cycle !== machine.cycle || owner === 'current'
  return {
    machine: after,
    events: isNews ? [describeFlashed(machine, nameArmer(machine))] : [],
  }
}

const nameArmer = (machine: Machine) => ({
  ...events.describe(machine),
  armed_by: machine.armed_by?.actor ?? null,
})

function endCapture(
  machine: Machine,
  signal: Extract<Signal, { kind: 'capture-ended' }>,
  now: string,
): Transition<Machine> {
  const after = contacts.rememberCaptureEnded(machine, signal, now)
  return { machine: after, events: after === machine ? [] : events.listCaptureEnds(after) }
}

function takeFailure(
  machine: Machine,
  { order = null, reason }: Pick<Extract<Signal, { kind: 'failed' }>, 'order' | 'reason'>,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const owner = decideOwner(machine, { token: tokenOf(match), order })
  // The flash under way did not fail.
  const isOld = (owner === 'before' || owner === 'other') && machine.cycle.offers > 0
  return {
    machine: isOld ? machine : contacts.rememberFailure(machine, reason, now),
    events: [describeFlashFailed(machine, reason)],
  }
}

function takeInventory(
  machine: Machine,
  inventory: Inventory,
  now: string,
  match: MatchToken,
): Transition<Machine> {
  const { hardware } = inventory
  const shown = match()
  // The flash is over, and the list of disks is from before it.
  if (shown.ok && isLateHardware(machine, shown.value, now)) {
    const after = contacts.rememberLateHardware(machine, inventory)
    return {
      machine: after,
      events: hardware === null ? [] : [events.describeLateHardware(machine)],
    }
  }
  return {
    machine: contacts.rememberDisks(machine, inventory, now),
    events: [events.describeInventory(machine, inventory)],
  }
}

function tokenOf(match: MatchToken): TokenMatch {
  const shown = match()
  return shown.ok ? shown.value : 'unproven'
}

// Current line: the actions of operators as the shared server carries them out: with channels, batches and events.

interface ActionDependencies extends Pick<Surroundings, 'findTemplate' | 'findEntry'> {
  settings(): Pick<PxeRules, 'armed_hours' | 'tokens'>
  /** Whether a run is under way that has not fallen silent; absent: nobody knows. */
  isWriting?(mac: Mac): boolean
  /** Absent: no channels. */
  readonly findChannel?: FindChannel
  /** Orders of a paused batch begin paused; absent: no batches. */
  isPaused?(batch: string): boolean
  cacheUrl(): string | null
  /** Why the name is taken, to someone who sees these machines; null: free. Absent: no check. */
  findNameOwner?(name: string, mac: Mac, canSee?: CanSeeMachine): string | null
}

const findIn = ({ findChannel }: Pick<ActionDependencies, 'findChannel'>): FindChannel =>
  findChannel ?? (() => null)

const sign = (
  { armed_hours = 0 }: Pick<PxeRules, 'armed_hours'>,
  before: Machine | null,
  after: Machine,
  by: Armer,
): Machine => limitOrder(before, rememberArmer(before, after, by), armed_hours, by.at)

/** Null: it exists, or none is named. */
function findUnknownTemplate(
  { findTemplate }: Pick<ActionDependencies, 'findTemplate'>,
  name: string | null | undefined,
): string | null {
  if (name === null || name === undefined || findTemplate(name) !== null) return null
  return `There is no first-boot template ${name}.`
}

const toAction = (
  site: ActionDependencies,
  name: string,
  action: MachineAction,
): Action<Machine> => ({
  ...action,
  apply(machine, parameters, by, batch = null, canSee) {
    const applied = applyResolved(site, action, { machine, name, parameters, now: by.at })
    if (!applied.ok) return applied
    const unknown = findUnknownTemplate(site, newTemplate(machine, applied.value))
    if (unknown !== null) return refuse(unknown)
    const obstacle = findActionObstacle(site, name, machine, applied.value, canSee)
    if (obstacle !== null) return refuse(obstacle)
    const summary = `${machine.mac} ${action.past}`
    const after = events.describe(applied.value)
    const changes = compareFields(events.describe(machine), after)
    // First, because the journal finds the events of a batch by it.
    const details = { ...(batch === null ? {} : { batch }), action: name, ...after, changes }
    return accept({
      machine: joinBatch(site, machine, sign(site.settings(), machine, applied.value, by), batch),
      events: [{ kind: `machine.${name}`, summary, details }],
    })
  },
})

interface AppliedAction {
  readonly machine: Machine
  readonly name: string
  readonly parameters: unknown
  readonly now: string
}

function applyResolved(
  site: ActionDependencies,
  action: MachineAction,
  { machine, name, parameters, now }: AppliedAction,
): Result<Machine, string> {
  const resolved = resolveAction(machine, name, parameters, findIn(site))
  if (!resolved.ok) return resolved
  const { channel, ...on } = resolved.value
  const applied = action.apply(on.machine, on.parameters, now)
  if (!applied.ok || channel === undefined) return applied
  return accept({ ...applied.value, channel })
}

/** Only an order that the action gives belongs to the batch, none that was there before. */
function joinBatch(
  { isPaused }: ActionDependencies,
  before: Machine,
  after: Machine,
  batch: string | null,
): Machine {
  if (batch === null || !beginsOrder(before, after)) return after
  const joined = { ...after, cycle: { ...after.cycle, batch } }
  const paused = isPaused?.(batch) === true ? pauseOrder(joined, after.updated_at) : null
  return paused?.ok === true ? paused.value : joined
}

function findActionObstacle(
  site: ActionDependencies,
  name: string,
  before: Machine,
  after: Machine,
  canSee: CanSeeMachine | undefined,
): string | null {
  if (name === 'capture') return findCaptureObstacle(site, after, canSee)
  if (name !== 'once' || after.once === null) return null
  if (site.isWriting?.(after.mac) === true) return BEING_WRITTEN
  const { entry } = after.once
  const { tokens } = site.settings()
  const { findTemplate } = site
  return findOnceObstacle(before, entry, site.findEntry?.(entry) ?? null, { tokens, findTemplate })
}

const BEING_WRITTEN = 'It is being flashed or captured now. Wait for its end.'

/** Null: the upload is possible, and nobody else uses the name. */
function findCaptureObstacle(
  { cacheUrl, findNameOwner }: ActionDependencies,
  { mac, capture }: Machine,
  canSee: CanSeeMachine | undefined,
): string | null {
  if (cacheUrl() === null) return NO_CACHE
  return capture === null ? null : (findNameOwner?.(capture.name, mac, canSee) ?? null)
}

const NO_CACHE = 'The server has no cache service to upload the image to.'

/** Null: unchanged. */
const newTemplate = (before: Machine, { first_boot }: Machine): string | null =>
  first_boot === before.first_boot ? null : first_boot
