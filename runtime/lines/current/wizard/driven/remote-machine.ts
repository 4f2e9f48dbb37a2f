/** This machine before its server: found, told of the disks and the hardware, asked for the plan. */
import type { SurveyedDisk } from '../../../../core/disk/disk.ts'
import { renderError } from '../../../../core/foundation/fault.ts'
import { listInventory } from '../../../../core/disk/inventory-disk.ts'
import type { Mac } from '../../../../core/machine/mac.ts'
import type { InventoryDisk } from '../../../../core/machine/machine.ts'
import { refuse, type Result } from '../../../../core/foundation/result.ts'
import { readPlaceNames } from '../../../../services/disk/disk-names.ts'
import type { Disks } from '../../../../services/disk/disks.ts'
import type { Hardware } from '../../../../services/host/hardware.ts'
import type { Marks } from '../../../../services/host/marks.ts'
import type { Nvram } from '../../../../services/disk/nvram.ts'
import type { Power } from '../../../../services/host/power.ts'
import {
  createServerClient,
  findServer,
  type RetryTime,
  type ServerClient,
} from '../../../../services/net/server-client.ts'
import { readAuthorities } from '../../../../services/net/authorities.ts'
import type { Rejection } from '../../../../services/net/server-exchange.ts'
import type { Environment } from '../../../../services/host/shell.ts'
import { linger } from '../../../../services/host/watch.ts'
import { chooseDisk } from '../flow/disk-offers.ts'
import type { DiskChoice } from '../flow/flow.ts'
import type { HookTimes } from './remote-hooks.ts'
import type { DrivenScreen } from '../flow/start.ts'

export interface RemoteDependencies {
  readonly disks: Pick<Disks, 'survey'>
  readonly hardware: Hardware
  readonly nvram: Nvram
  readonly power: Power
  readonly marks: Marks
  /** `FLASHER_PXE_TOKEN`, `FLASHER_REGISTER_UEFI_BOOT`. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** Milliseconds on a steady clock. */
  readonly now: () => number
  /** Loop devices count as disks; where disks are named by place. For trying things out. */
  readonly loops?: boolean
  readonly placeNames?: string
  readonly times?: Partial<RemoteTimes>
}

/** Milliseconds. */
interface RemoteTimes extends HookTimes {
  /** For how long disks and plan are asked for again when the server does not answer. */
  readonly contact: number
}

/** A machine's contact with its server. */
export interface RemoteMachine {
  readonly mac: Mac
  readonly client: ServerClient
  readonly parts: RemoteDependencies
  readonly stage: DrivenScreen
  /** On the screen, into the status file and the transcript. */
  say(line: string): void
  readonly transcript: () => readonly string[]
  /** The disks as they were told to the server last. */
  readonly disks: () => readonly InventoryDisk[]
  /** Looks at the disks, once more. */
  look(): Promise<readonly InventoryDisk[]>
  /** A disk as it was when it was looked at last. */
  choose(path: string): DiskChoice | null
  /** Tells the server what `look` found; null: it was told. */
  tellDisks(patience: RetryTime): Promise<Rejection | null>
  /** Whether it has the newest list. */
  readonly isTold: () => boolean
  /**
   * Tells of the hardware as soon as it is known; resolves then, or when it cannot be. A server that
   * has not met this machine before knows it only after the plan was asked for.
   */
  tellHardware(): Promise<void>
  patience(): RetryTime
}

const CONTACT_MS = 30_000
const MAX_LINES = 400

export interface BoxOptions {
  readonly bases: readonly string[]
  readonly mac: Mac
  readonly stage: DrivenScreen
  readonly parts: RemoteDependencies
}

/** Finds the server and has the disks posted at once. What fails later does so where it is needed. */
export async function openRemoteMachine({
  bases,
  mac,
  stage,
  parts,
}: BoxOptions): Promise<Result<RemoteMachine, string>> {
  const { env, signal, marks, now } = parts
  const lines: string[] = []
  const say = (line: string) => {
    lines.push(line)
    if (lines.length > MAX_LINES) lines.shift()
    void marks.status(line)
    stage.say(line)
  }
  const deadline = now() + (parts.times?.contact ?? CONTACT_MS)
  const patience = (): RetryTime => ({
    ms: deadline - now(),
    onRetry: ({ reason }) => say(`The server does not answer (${reason}); trying again…`),
  })
  // Beside everything else from here on; what it finds is posted when both are there.
  const tree = parts.hardware.readTree()
  tree.catch(() => undefined)
  // A file that cannot be used is named here, once, instead of at every request.
  if (bases.some((base) => base.startsWith('https:'))) await readAuthorities(env)
  const base = await find(bases, { parts, say, deadline })
  if (base === null) return refuse(`No machine server answers at ${bases.join(' or ')}.`)
  const token = env['FLASHER_PXE_TOKEN'] || null
  const retryMs = parts.times?.retry ?? 1000
  const client = createServerClient({ base, mac, token, env, signal, retryMs })

  let found: readonly SurveyedDisk[] = []
  let known: readonly InventoryDisk[] = []
  let isTold = false
  async function look() {
    const names = await readPlaceNames(parts.placeNames)
    found = await parts.disks.survey({ loops: parts.loops ?? false })
    known = listInventory(found, names)
    return known
  }
  async function tellDisks(how: RetryTime) {
    const told = await client.sendInventory({ disks: known }, how)
    isTold = told.ok
    return told.ok ? null : told.refusal
  }

  await tellFirst({ look, tellDisks, say, patience })
  let telling: Promise<void> | null = null
  async function tellTree() {
    const lshw = await tree.catch(() => null)
    if (lshw !== null && known.length > 0) await client.sendInventory({ disks: known, lshw })
  }
  return {
    ok: true,
    value: {
      mac,
      client,
      parts,
      stage,
      say,
      look,
      choose(path) {
        const seen = found.find((disk) => disk.path === path)
        return seen === undefined ? null : chooseDisk(seen)
      },
      tellDisks,
      tellHardware: () => (telling ??= tellTree()),
      patience,
      transcript: () => lines,
      disks: () => known,
      isTold: () => isTold,
    },
  }
}

interface Finding {
  readonly parts: RemoteDependencies
  readonly deadline: number
  say(line: string): void
}

/** Who is named without doubt is taken as he is named. */
async function find(bases: readonly string[], { parts, say, deadline }: Finding) {
  const [only, ...others] = bases
  if (only !== undefined && others.length === 0) return only
  const { signal, now } = parts
  for (let tries = 1; ; tries += 1) {
    const found = await findServer(bases, { signal, env: parts.env })
    if (found !== null || signal.aborted || now() + TRY_MS > deadline) return found
    if (tries === 1) say(`Looking for the machine server at ${bases.join(' and ')}…`)
    await linger(TRY_MS, signal)
  }
}

const TRY_MS = 1000

type First = Pick<RemoteMachine, 'look' | 'tellDisks' | 'say' | 'patience'>

/** A list that cannot be had or told does not keep us from asking for the plan. */
async function tellFirst({ look, tellDisks, say, patience }: First): Promise<void> {
  try {
    await look()
  } catch (thrown) {
    say(`The disks of this machine cannot be listed: ${renderError(thrown)}`)
    return
  }
  const no = await tellDisks(patience())
  // 404: it does not know us yet, but will once we ask for the plan.
  if (no !== null && no.status !== 404) say(`The server did not take the disks: ${no.reason}`)
}
