/** Current line: opens what controls the power of machines. */
import {
  createPower,
  openPowerBook,
  type PowerService,
  type PowerTimes,
} from '#fleet/power/power-service.ts'
import type { BootStamps } from '#fleet/run/running-runs.ts'
import { createReach } from '#fleet/power/driver.ts'
import { describeListing } from '#fleet/power/rules/power.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { createEventRecorder } from '#server/routes/fleet.ts'
import { createPowerControl } from '#server/power/power-control.ts'
import { decideFolders, type LineConfig } from '#server/current/assembly/configuration.ts'
import type { State } from '#server/current/assembly/state.ts'
import {
  askNeighbours,
  createProofs,
  type ProofsDependencies,
  readHostKeys,
} from '#fleet/proof/proofs.ts'
import { decideAnswer } from '#fleet/proof/rules/proof.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Clock } from '#server/app/machine-server.ts'

interface PowerServices {
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly env: Environment
  readonly stamps: BootStamps
  readonly limits?: PowerLimits
  now(): Date
}

/** Milliseconds; shorter in tests. */
interface PowerLimits extends Omit<PowerTimes, 'limit'> {
  readonly request: number
  /** For all of a request; absent: the setting. */
  readonly limit?: number
}

const LIMITS: PowerLimits = { request: 20_000, poll: 2000, again: 30_000, rest: 5000 }

const NOWHERE = 'no addresses are listed for the password of the label'

/** Rejects with a Fault if the file of BMCs cannot be read. */
export async function openPower({
  config,
  state,
  log,
  env,
  now,
  stamps,
  limits = LIMITS,
}: PowerServices) {
  const { request, ...pace } = limits
  const settings = () => config.current()
  const book = await openPowerBook(decideFolders(config).power, async () => {
    await state.presence?.share()
  })
  for (const [label, { length }] of Object.entries(book.listUsers().addresses)) {
    if (length === 0) log.warn(`${NOWHERE} ${label}, so it is not sent. ${describeListing(label)}`)
  }
  const power = createPower({
    book,
    shell: createShell({ env }),
    findAddress: createReach(() => ({
      networks: settings().power.networks,
      ownPorts: [settings().server.port, settings().cache.port],
    })),
    timeoutMs: request,
    times: () => ({ limit: settings().power.patience * 1000, ...pace }),
    now,
    onSeen: (mac) => state.changes.announce({ topic: 'machine', mac }),
  })
  const control = createPowerControl({
    power: stampPower(power, stamps),
    book,
    labelsOf: (mac) => state.machines.peek(mac)?.labels ?? [],
    findRun: (mac) => state.runs.findRunning(mac)?.id ?? null,
    recordAll: createEventRecorder({ journal: state.journal, log }),
    standing: state.standing,
    stagger: () => settings().power.stagger * 1000,
    now,
  })
  return {
    control,
    /** Records what is cut off before the journal closes. */
    async [Symbol.asyncDispose]() {
      await power[Symbol.asyncDispose]()
      await control.settle()
    },
  }
}

/** The next run of a machine begins when it is turned on. */
const stampPower = (power: PowerService, stamps: BootStamps): PowerService => ({
  ...power,
  async act(mac, labels, request) {
    const done = await power.act(mac, labels, request)
    const turnsOn = request.action === 'on' || request.action === 'restart'
    if (done.ok && done.value.changed && turnsOn) stamps.note(mac, 'power_on_at')
    return done
  },
})

/** Current line: opens what waits for the first boot of systems that were flashed. */
interface ProofServices {
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly env: Environment
  readonly clock: Clock
  /** What looks at machines from outside, instead of at their addresses. */
  readonly witnesses?: Pick<ProofsDependencies, 'findAnswers' | 'readKeys'>
}

/** An order that is older is one that this server finds when it starts: nobody knows what ran before it. */
const FRESH_MS = 5000

export function openProofs({ config, state, log, env, clock, witnesses }: ProofServices) {
  const { database, changes, machines } = state
  const shell = createShell({ env })
  const proofs = createProofs({
    database,
    changes,
    log,
    settings: config.derive(({ proof }) => proof),
    findCall: (mac) => machines.peek(mac)?.first_boot_taken_at ?? null,
    ...clock,
    async findAnswers(macs) {
      const watched = macs.flatMap((mac) => machines.peek(mac) ?? [])
      const neighbours = await askNeighbours(watched.map(({ last_seen_ip: ip }) => ip ?? ''))
      return new Map(
        watched.flatMap((machine) => {
          const answers = decideAnswer(machine, neighbours)
          return answers === null ? [] : [[machine.mac, answers] as const]
        }),
      )
    },
    async readKeys(mac) {
      const { port } = config.current().proof
      const host = machines.peek(mac)?.last_seen_ip ?? null
      return host === null || port === 0 ? null : await readHostKeys(shell, host, port)
    },
    ...witnesses,
  })
  changes.listen(
    (change) => {
      if (change.topic !== 'machine' || config.current().proof.port === 0) return
      const mac = parseMac(change.mac)
      const machine = mac.ok ? machines.peek(mac.value) : null
      if (machine === null) return
      const { started_at: order } = machine.cycle
      if (clock.now().getTime() - epochOf(order) < FRESH_MS) proofs.order(machine.mac, order)
    },
    ['machine'],
  )
  return proofs
}
