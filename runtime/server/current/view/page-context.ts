/** Current line: what its pages use beside the site, and how a request sees a machine. */
import type { MisfitFinder } from '#engine/bootable/misfit-finder.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { Presence } from '#fleet/cluster/presence.ts'
import type { Backups } from '#fleet/backup/backups.ts'
import type { ReleaseSource } from '#fleet/boot/rules/release.ts'
import type { Channels } from '#fleet/channel/channels.ts'
import type { Templates } from '#fleet/first-boot/templates.ts'
import type { Entries } from '#fleet/once/entries.ts'
import type { EntryFiles } from '#fleet/once/entry-files.ts'
import type { SettingsStore } from '#fleet/state/settings-store.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { PageContext, PageServices } from '#server/pages/page-context.ts'
import type { PowerControl } from '#server/power/power-control.ts'
import type { BatchKeeper } from '#server/current/batches/keeper/batch-keeper.ts'
import type { FilePreviews } from '#fleet/machine/undoable-edits.ts'
import type { ChangedLine } from '#server/current/machines/rules/machine-file.ts'
import type { LineConfig } from '#server/current/assembly/configuration.ts'
import type { Notify } from '#server/current/assembly/notify.ts'
import type { Netboot } from '#server/current/assembly/netboot.ts'
import type { Proxy } from '#server/current/assembly/proxy.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { Surroundings } from '#server/current/machines/rules/surroundings.ts'
import { nameOf, viewMachine, type MachineView } from './machine-view.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { attributes, html, type Content } from '#kit/web/ui/html.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

interface Queue {
  readonly most: number
  readonly flashing: number
  readonly waiting: number
}

export interface CurrentServices extends PageServices {
  readonly config: LineConfig
  readonly store: SettingsStore
  readonly backups: Backups
  readonly netboot: Netboot
  readonly proxy: Proxy
  readonly templates: Templates
  readonly channels: Channels
  readonly entries: Entries
  readonly entryFiles: EntryFiles
  /** Without a site or repository in the settings. */
  readonly releaseSource: ReleaseSource
  readonly keeper: BatchKeeper
  readonly power: PowerControl
  readonly notify: Notify
  /** Kept until somebody confirms it. */
  readonly previews: FilePreviews<ChangedLine>
  /** A new array after each change. */
  images(): readonly CatalogEntry[]
  /** At this base address. */
  gather(on: { readonly baseUrl: string; readonly now: string }): Surroundings
  cacheUrl(): string | null
  readonly misfits: MisfitFinder
  /** Null: flashes are not limited. */
  queue(): Queue | null
  /** Null: this server stands alone. */
  readonly presence: Pick<Presence, 'view'> | null
}

export interface CurrentContext extends PageContext<Machine, CurrentServices> {
  /** Of a deleted machine: its MAC. */
  nameOf(mac: Mac): string
  /** As a network boot would find it now. */
  view(machine: Machine): MachineView
  /** As an action would leave it. */
  foresee(machine: Machine): MachineView
  /** Why the edit does not arm it; null: it may. */
  refuseArming(before: Machine | null, after: Machine): Promise<string | null>
}

export function withMachines(base: PageContext<Machine, CurrentServices>): CurrentContext {
  const { site, services, contact } = base
  return {
    ...base,
    nameOf(mac) {
      const machine = site.machines.peek(mac)
      return machine === null ? mac : nameOf(machine)
    },
    refuseArming: async (before, after) => (await site.line.refuseArming?.(before, after)) ?? null,
    view: (machine) =>
      viewMachine(
        machine,
        services.gather(contact()),
        site.runs.findRunning(machine.mac),
        site.runs.findWritten(machine.mac),
      ),
    foresee: (machine) => viewMachine(machine, services.gather(contact()), null),
  }
}

/** The button that undoes the newest edit of a machine, for a minute after it. */
export function renderUndo({ site }: Pick<CurrentContext, 'site'>, mac: Mac): Content {
  const edit = site.fleet.findUndoable(mac)
  if (edit === null) return null
  return html`<form
    class="inline"
    ${attributes({ method: 'post', action: `${machinePath(mac)}/undo` })}
  >
    ${hidden({ edit })}<button>Undo</button>
  </form>`
}
