/** Earlier line: its rules about machines, behind the interface of the shared server. */
import { parseBootToken, renderBootToken } from '#fleet/boot/rules/boot-decision.ts'
import { renderBoot } from '#fleet/boot/rules/boot-script.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import { fieldError, parseFields } from '#kit/foundation/field-error.ts'
import { plainWords } from '#kit/foundation/printable.ts'
import { accept, refuse } from '#kit/foundation/result.ts'
import {
  describeDisks,
  describeFlashed,
  describeFlashFailed,
} from '#fleet/machine/rules/flash-events.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import { findWorkflowFault } from '#fleet/workflow/online-workflows.ts'
import type { Action, ServerLine } from '#server/routes/line.ts'
import type { Contact, ScriptTransition, Signal, Transition } from '#server/routes/transition.ts'
import {
  applyPolicy,
  NoParameters,
  POLICY_PASTS,
  BOOT_POLICIES,
  decideOutcome,
  isArmed,
  isUnassigned,
  toWire,
  type BootPolicy,
  type Machine,
  applyUpsert,
  MachineUpsertSchema,
} from './rules/machine.ts'
import {
  decideBoot,
  decidePlan,
  discover,
  rememberDone,
  rememberFailure,
  rememberOffer,
} from './rules/boot.ts'
import * as events from './rules/machine-events.ts'
import { needsFiles } from '#fleet/workflow/rules/online-workflow.ts'
import { beginWorkflow, rememberBoot } from './rules/workflow.ts'

interface LineDependencies {
  /** Signs tokens for provisioning files. */
  readonly bootKey: Pick<Secret, 'sign' | 'verify'>
  /** The output of workflow runs. */
  readonly workflows: string
}

const LET_IN = accept([])
/** No flash takes as long as this; `done` ends the token earlier. */
const TOKEN_HOURS = 24

export const createMachineLine = (site: LineDependencies): ServerLine<Machine> => ({
  discover,
  describe: (machine) => ({
    mode: machine.boot_policy,
    details: events.describe(machine),
    disks: null,
    isUnassigned: isUnassigned(machine),
  }),
  toWire,
  parseUpsert(body, before, { mac, by }) {
    const parsed = parseFields(MachineUpsertSchema, body)
    if (!parsed.ok) return parsed
    const { cijoe_workflow_ref: workflow } = parsed.value
    const fault = workflow === null ? null : findWorkflowFault(workflow)
    if (fault !== null) return refuse([fieldError(['cijoe_workflow_ref'], fault)])
    return accept(applyUpsert(before, mac, parsed.value, by))
  },
  admit: () => LET_IN,
  decideBoot: (machine, contact) => offerBoot(site, machine, contact),
  decidePlan(machine) {
    const plan = decidePlan(machine)
    return { machine, events: [], plan, mode: plan.mode }
  },
  transition: (machine, signal, contact) => applySignal(site, machine, signal, contact.now),
  describeRun: (machine) => describeRun(machine),
  nameOrder: ({ armed_at }) => armed_at,
  decideOutcome,
  actions: Object.fromEntries(BOOT_POLICIES.map((policy) => [policy, toAction(policy)])),
})

function offerBoot(
  site: LineDependencies,
  before: Machine,
  contact: Contact,
): ScriptTransition<Machine> {
  const { baseUrl: base, now } = contact
  const token = renderToken(site, before, now)
  const ruling = decideBoot(before, { base, token, arch: contact.query['buildarch'] })
  const { rule, reason, decision } = ruling
  const mode = before.boot_policy
  return {
    machine: rememberBoot(rememberOffer(before, ruling, now), decision.kind === 'to-disk', contact),
    // GRUB asks again within one boot if it could not start what it got.
    events:
      contact.query['offered'] === decision.kind ? [] : [events.describeScript(before, ruling)],
    script: renderBoot(decision, { mac: before.mac, mode, rule, reason }, contact.loader),
    mode,
    offer: rule,
    boots: decision.kind,
  }
}

/** Null: it fetches nothing secret. */
function renderToken(
  { bootKey }: Pick<LineDependencies, 'bootKey'>,
  { mac, provisioning_mode, armed_at: cycle }: Machine,
  now: string,
): string | null {
  if (!needsFiles(provisioning_mode)) return null
  const expiresAt = Temporal.Instant.from(now).add({ hours: TOKEN_HOURS }).toString()
  return renderBootToken(mac, { cycle, expiresAt }, bootKey.sign)
}

/**
 * Whether the token is from this server and the present cycle. It does not expire during a run, or
 * after a flash was offered and no end reported: the clock may have been set since.
 */
export function provesBoot(
  { bootKey }: Pick<LineDependencies, 'bootKey'>,
  { mac, armed_at, sent, failure }: Machine,
  { bearer, now }: Contact,
  hasRun: boolean,
): boolean {
  const isOpen = hasRun || (sent !== null && failure === null)
  const shown =
    bearer === null ? null : parseBootToken(bearer, { mac, now, isOpen }, bootKey.verify)
  if (shown === null || !shown.ok) return false
  return Date.parse(shown.value.cycle) === Date.parse(armed_at)
}

function applySignal(
  { workflows }: LineDependencies,
  machine: Machine,
  signal: Signal,
  now: string,
): Transition<Machine> {
  switch (signal.kind) {
    case 'done':
      return {
        machine: beginWorkflow(rememberDone(machine, now), workflows, now),
        events: [describeFlashed(machine, events.describe(machine))],
      }
    case 'failed':
      return {
        machine: rememberFailure(machine, signal.reason, now),
        events: [describeFlashFailed(machine, signal.reason)],
      }
    case 'run-stopped':
      return {
        machine,
        events: signal.result === 'failed' ? [describeFlashFailed(machine, signal.reason)] : [],
      }
    case 'inventory':
      return { machine, events: [describeDisks(machine, signal.inventory)] }
    case 'boot-file':
    case 'run-began':
    // No machine of this line is captured.
    case 'capture-ended':
      return { machine, events: [] }
  }
}

const GONE = { src: null, ref: null, sha256: null, size_bytes: null } as const

/** Whatever it was assigned since. */
function describeRun(machine: Machine): ReturnType<ServerLine<Machine>['describeRun']> {
  const { mac, sent } = machine
  const { image, armed_by } = sent ?? machine
  const isFlash = sent !== null || isArmed(machine)
  const mode = isFlash ? 'flash' : 'interactive'
  return {
    origin: { mac, mode, image: isFlash ? describeImage(image) : null, disk: null, armed_by },
    plannedAt: machine.offered_at ?? sent?.at ?? null,
    startedBefore: null,
  }
}

const describeImage = (image: string | null) =>
  image === null ? null : { ...GONE, name: plainWords(image), format: detectFormat(image) }

const toAction = (policy: BootPolicy): Action<Machine> => ({
  scope: policy === 'flash' ? 'flash' : 'machines',
  check(parameters) {
    const checked = parseFields(NoParameters, parameters)
    return checked.ok ? null : checked.refusal
  },
  apply(machine, _, by) {
    const applied = applyPolicy(machine, policy, by)
    if (!applied.ok) return applied
    const summary = `${machine.mac} ${POLICY_PASTS[policy]}`
    const details = { action: policy, ...events.describe(applied.value) }
    const event = { kind: `machine.${policy}`, summary, details }
    return accept({ machine: applied.value, events: [event] })
  },
})
