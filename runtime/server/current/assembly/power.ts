/** Current line: opens what controls the power of machines. */
import { openPowerBook } from '#fleet/power/power-store.ts'
import { createPower, type PowerService, type PowerTimes } from '#fleet/power/power-service.ts'
import type { BootStamps } from '#fleet/run/boot-stamps.ts'
import { createReach } from '#fleet/power/driver.ts'
import { describeListing } from '#fleet/power/rules/reach.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import type { ServerLog } from '#kit/terminal/text/server-log.ts'
import { createEventRecorder } from '#server/routes/fleet.ts'
import { createPowerControl } from '#server/power/power-control.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

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
    if (length === 0) log.warn(`${NOWHERE} ${label}: it is sent nowhere. ${describeListing(label)}`)
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
