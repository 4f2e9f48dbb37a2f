/** Makes one backup: a full copy of the database and the inventory beside it, read back and verified. */
import { randomBytes } from 'node:crypto'
import { mkdir, stat, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BackupManifest } from './rules/backup.ts'
import type { BackupStore } from './backup-store.ts'
import type { Database } from '#fleet/state/database.ts'
import { requireSpace } from '#fleet/state/disk-space.ts'
import { removeTree, replaceFile } from '#kit/host/folders.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { NamedTemplate } from '#engine/first-boot/rules/template.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { Templates } from '#fleet/first-boot/templates.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { HardwareTree } from '#fleet/state/hardware-trees.ts'
import type { Machines } from '#fleet/state/machines.ts'

interface BackupOrder {
  readonly id: string
  readonly trigger: string
  readonly at: string
  readonly signal: AbortSignal
  /** Bytes stored so far; `total` is null until it is known. */
  onProgress(done: number, total: number | null): void
}

export type BackupMaker = ReturnType<typeof createBackupMaker>

/** A smaller inventory is one file, which other programs can read. */
const INVENTORY_WHOLE_BYTES = 64 * 2 ** 20
const DATABASE_WHOLE_BYTES = 8 * 2 ** 20
/** Stays free for the server's own work while a copy lies beside its database. */
const SPARE_BYTES = 64 * 2 ** 20

/** A Fault without room or where the store fails; what was stored of that backup is removed. */
export function createBackupMaker({
  database,
  bundles,
  store,
}: {
  readonly database: Database
  readonly bundles: Bundles
  readonly store: BackupStore
}) {
  // Beside the database: the free room was measured there.
  const name = database.isOwner ? '.backup' : `.backup-${randomBytes(4).toString('hex')}`
  const folder = join(dirname(database.path), name)

  async function fill(order: BackupOrder): Promise<BackupManifest> {
    const { id, signal, trigger, at } = order
    const copy = join(folder, 'state.db')
    const { size } = await stat(database.path)
    await requireSpace(dirname(database.path), size + SPARE_BYTES, 'a backup')
    await database.copyTo(copy, { signal })
    const machines = await bundles.exportTo(folder)
    signal.throwIfAborted()
    const stored = await Promise.all([stat(copy), stat(join(folder, INVENTORY))])
    const total = stored.reduce((sum, one) => sum + one.size, 0)
    let done = 0
    const onBytes = (bytes: number) => {
      done += bytes
      order.onProgress(done, total)
    }
    order.onProgress(0, total)
    // The database first: an inventory alone would count as a backup of the earlier line.
    const files = [
      await store.put(id, 'state.db', copy, { signal, onBytes, wholeUpTo: DATABASE_WHOLE_BYTES }),
      await store.put(id, INVENTORY, join(folder, INVENTORY), {
        signal,
        onBytes,
        wholeUpTo: INVENTORY_WHOLE_BYTES,
      }),
    ]
    const { release, line } = database
    const manifest = { version: 1, backup_id: id, created_at: at, release, line } as const
    const number = (await store.findLastNumber()) + 1
    const finished: BackupManifest = { ...manifest, trigger, machines, number, files }
    signal.throwIfAborted()
    await store.finish(finished)
    return finished
  }

  const clear = () => removeTree(folder)

  return {
    async make(order: BackupOrder): Promise<BackupManifest> {
      await clear()
      await mkdir(folder, { mode: 0o700 })
      try {
        return await fill(order)
      } catch (thrown) {
        // Best effort: without a manifest it is removed at the next start.
        await store.remove(order.id).catch(() => undefined)
        throw thrown
      } finally {
        await clear()
      }
    },
    async clean() {
      // A command beside a running server may see that server's work.
      if (!database.isOwner) return
      await clear()
      for (const id of await store.listUnfinished()) await store.remove(id)
    },
  }
}

// Export bundles: writes the fleet's hardware to a folder, and imports it from one ("Export bundle").

export const INVENTORY = 'inventory.json'

/** A release line's bundle format; pure. */
export interface BundleRules<Machine extends MachineBase, Item extends { readonly mac: Mac }> {
  build(machine: Machine, hardware: HardwareTree | null): Item
  /** An object whose last member is `machines`. */
  render(
    items: readonly Item[],
    about: {
      readonly version: string
      readonly now: string
      readonly templates: readonly NamedTemplate[]
    },
  ): string
  /** The refusal is a sentence. Templates come without their secrets. */
  parse(text: string): Result<BundleContent<Item>, string>
  toMachine(item: Item, before: Machine | null, now: string): Machine
  toHardware(item: Item): HardwareTree | null
}

interface BundleContent<Item> {
  readonly machines: readonly Item[]
  readonly templates: readonly NamedTemplate[]
}

interface BundleDependencies<Machine extends MachineBase, Item extends { readonly mac: Mac }> {
  readonly machines: Machines<Machine>
  readonly templates: Templates
  readonly rules: BundleRules<Machine, Item>
  readonly changes: Changes
  readonly version: string
  now?(): Date
}

export type Bundles = ReturnType<typeof createBundles>

/** Readable by all: a bundle is for other programs and holds no secrets. */
const FOR_ALL = 0o644
/** Larger texts cannot be parsed at once. */
const MAX_BYTES = 384 * 2 ** 20

/** An import of a text that is no bundle rejects with a Fault `input-invalid`. */
export function createBundles<Machine extends MachineBase, Item extends { readonly mac: Mac }>(
  parts: BundleDependencies<Machine, Item>,
) {
  const { machines, templates, rules, changes, version } = parts
  const now = () => (parts.now?.() ?? new Date()).toISOString()

  /** One machine at a time: the document can be larger than memory. */
  async function* render() {
    const frame = rules.render([], { version, now: now(), templates: templates.list() })
    const at = frame.lastIndexOf('[]')
    const fleet = await machines.list()
    if (fleet.length === 0) {
      yield frame
      return
    }
    yield `${frame.slice(0, at)}[`
    let separator = '\n'
    for (const machine of fleet) {
      const item = rules.build(machine, await machines.findHardware(machine.mac))
      yield `${separator}    ${JSON.stringify(item, null, 2).replaceAll('\n', '\n    ')}`
      separator = ',\n'
    }
    yield `\n  ]${frame.slice(at + 2)}`
  }

  function parse(text: string, name: string): BundleContent<Item> {
    const parsed = rules.parse(text)
    if (parsed.ok) return parsed.value
    throw new Fault('input-invalid', `${name}: ${parsed.refusal}`, { hint: NOTHING })
  }

  /** All machines or none. `name` names the text in errors. Returns the number of machines. */
  async function importText(text: string, name: string) {
    const content = parse(text, name)
    const at = now()
    await machines.updateMany(
      content.machines.map((item) => ({
        mac: item.mac,
        change: (before) => rules.toMachine(item, before, at),
        hardware: rules.toHardware(item),
      })),
    )
    for (const one of content.templates) {
      await templates.save(one.name, (before) => before ?? { ...one, updated_at: at })
    }
    for (const { mac } of content.machines) changes.announce({ topic: 'machine', mac })
    return content.machines.length
  }

  return {
    render,
    importText,
    listMacs: (text: string, name: string): ReadonlySet<string> =>
      new Set(parse(text, name).machines.map(({ mac }) => mac)),
    /** Whole or not at all; returns the number of machines. */
    async exportTo(folder: string) {
      await replaceFile(join(folder, INVENTORY), render(), FOR_ALL)
      return machines.count()
    },
    async importFrom(folder: string) {
      const path = join(folder, INVENTORY)
      return importText(await readBounded(path), path)
    },
  }
}

const NOTHING = 'Nothing was imported.'

async function readBounded(path: string): Promise<string> {
  const { size } = await stat(path).catch((cause: unknown) => {
    throw new Fault('input-missing', `${path} is not there`, {
      hint: 'Name the folder that `flasher-web export` wrote.',
      cause,
    })
  })
  if (size > MAX_BYTES) throw new Fault('input-invalid', `${path} is too large`, { hint: NOTHING })
  return readFile(path, 'utf8')
}
