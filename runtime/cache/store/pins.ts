/** Images that machines are bound to, as their servers report; these are not removed to make room. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import {
  type CapturedMachine,
  fileSource,
  type ImageUser,
} from '#engine/catalog/rules/cache-entry.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { createSilences } from '#cache/blobs/blobs.ts'

export type Pins = Awaited<ReturnType<typeof createPins>>

const KEPT_MS = 7 * 24 * 3600 * 1000
const MAX_HOLDERS = 100
const KEY = 'pins'

const HolderSchema = z.object({
  refs: z.array(z.string()).readonly(),
  machines: z.array(z.number()).readonly().nullable().catch(null),
})
interface MachineReport {
  readonly captured: readonly CapturedMachine[]
  readonly users: readonly ImageUser[]
}

/** By the name of the server. */
const Holders = z.array(z.tuple([z.string(), HolderSchema])).catch([])

export async function createPins(records: Storage, elapsed: () => number) {
  const holders = new Map(Holders.parse(await records.getItem(KEY)))
  const silences = await createSilences(records, 'quiet-holders', elapsed)
  /** Not stored: labels and names are unknown until a server has reported them. */
  const reports = new Map<string, MachineReport>()
  /** Machines by ref; null: a server does not say. */
  let pinned = new Map<string, number | null>()

  function count() {
    for (const name of holders.keys()) if (silences.read(name) > KEPT_MS) holders.delete(name)
    pinned = new Map()
    for (const { refs, machines } of holders.values()) {
      for (const [at, ref] of refs.entries()) {
        const [before, more] = [pinned.get(ref), machines?.[at]]
        pinned.set(ref, before === null || more === undefined ? null : (before ?? 0) + more)
      }
    }
  }
  count()

  return {
    has: (ref: string) => pinned.has(ref),
    /** Also where the file was removed. */
    hasFile(name: string): boolean {
      const ref = refOf(fileSource(name))
      return ref.ok && pinned.has(ref.value)
    },
    /** Null: no server has said so. */
    countMachines: (ref: string): number | null =>
      pinned.get(ref) ?? (holders.size === 0 || pinned.has(ref) ? null : 0),
    /** One list for each server that ordered an image of the machine. */
    listLabels: (mac: string): readonly (readonly string[])[] =>
      [...reports.values()].flatMap(({ captured }) =>
        captured.filter((each) => each.mac === mac).map(({ labels }) => labels),
      ),
    /** The first of them. */
    listUsers: (ref: string): readonly ImageUser[] =>
      [...reports.values()].flatMap(({ users }) => users.filter((each) => each.ref === ref)),
    /**
     * Replaces the pins of this server. A pin ends after a week of uptime without renewal.
     * `machines`: how many by ref; null: unknown.
     */
    async pin(
      holder: string,
      refs: readonly string[],
      machines: readonly number[] | null = null,
      report: MachineReport = { captured: [], users: [] },
    ) {
      holders.delete(holder)
      reports.delete(holder)
      reports.set(holder, report)
      if (reports.size > MAX_HOLDERS) reports.delete([...reports.keys()][0] ?? '')
      silences.end(holder)
      holders.set(holder, { refs, machines })
      // The latest ones stay.
      for (const name of [...holders.keys()].slice(0, -MAX_HOLDERS)) holders.delete(name)
      count()
      await records.setItem(KEY, JSON.stringify([...holders]))
      await silences.save([...holders.keys()])
    },
  }
}

/** Where a cache keeps its own files: in a folder of its name in the folder of images. */
export const DATA_FOLDER = '.cache'
