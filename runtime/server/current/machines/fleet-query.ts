/** The search of the machines page: terms, fields, times, and the order of columns. */
import { BOOT_MODES } from './rules/boot-mode.ts'
import {
  createSelector,
  type Description,
  listMistakes,
  type QueryMistake,
  type Vocabulary,
} from '#fleet/machine/rules/query.ts'
import { listSpellings } from '#kit/net/rules/mac.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import { channelOf, isUnassigned, type Machine } from './rules/machine.ts'
import { listStateNames, urgencyOf } from '#fleet/machine/rules/states.ts'
import { nameOf, type MachineView } from '#server/current/view/machine-view.ts'

const withoutPrefix = (mode: string) => mode.replace('flasher-', '')

export const VOCABULARY: Vocabulary = {
  fields: [
    'mac',
    'name',
    'label',
    'mode',
    'state',
    'image',
    'channel',
    'disk',
    'serial',
    'ip',
    'arch',
    'is',
  ],
  times: ['seen', 'flashed', 'discovered'],
  values: {
    mode: [...BOOT_MODES, ...BOOT_MODES.map(withoutPrefix)],
    state: listStateNames(),
    is: ['discovered', 'assigned', 'locked', 'unlocked', 'waiting', 'drifted'],
  },
  // Names of disks without a serial number.
  prefixes: ['wwn', 'path'],
}

export const listSearchMistakes = (text: string): readonly QueryMistake[] =>
  listMistakes(text, VOCABULARY)

type Match = (machines: readonly Machine[], query: URLSearchParams) => readonly Machine[]

interface MatchDependencies {
  /** A new object whenever anything besides the machine changed that views depend on. */
  context(): object
  view(machine: Machine): MachineView
  now(): Date
}

/** By `q` and `sort`. Deployed scripts write `filter=discovered` and `filter=assigned`. */
export function createMatch({ context, view, now }: MatchDependencies): Match {
  const select = createSelector<Machine, object>({
    vocabulary: VOCABULARY,
    describe: (machine) => describe(view(machine)),
  })
  return (machines, query) => {
    const text = [query.get('q') ?? '', FILTERS[query.get('filter') ?? ''] ?? ''].join(' ').trim()
    return select(
      machines,
      { text, sort: query.get('sort') },
      { context: context(), now: now().getTime() },
    )
  }
}

const FILTERS: Readonly<Record<string, string>> = {
  discovered: 'is:discovered',
  assigned: '-is:discovered',
}

function describe(view: MachineView): Description {
  const { machine } = view
  const times = {
    seen: millis(machine.last_seen_at),
    flashed: millis(machine.last_flashed_at),
    discovered: millis(machine.discovered_at),
  }
  return {
    text: textOf(view),
    fields: fieldsOf(view),
    times,
    order: {
      state: urgencyOf(view.view.state),
      name: nameKeyOf(machine.mac, nameOf(machine)),
      next: BOOT_MODES.indexOf(machine.boot_mode),
      mac: machine.mac,
      image: naturalOrNull(imageName(view)),
      disk: naturalOrNull(machine.target_disk_serial),
      labels: naturalOrNull(machine.labels.join(' ')),
      ip: naturalOrNull(machine.last_seen_ip),
      arch: machine.arch,
      ...times,
    },
  }
}

/** Machines without a name come last. */
export const nameKeyOf = (mac: string, name: string): string =>
  name === mac ? `\uffff${mac}` : naturalKey(name)

const naturalOrNull = (text: string | null) =>
  text === null || text === '' ? null : naturalKey(text)

const imageName = ({ image, machine }: MachineView): string | null =>
  image?.name ?? machine.bty_image_ref?.slice(0, 12) ?? null

function textOf({ machine, view, image, disk }: MachineView): string {
  const {
    mac,
    name,
    hostname,
    labels,
    last_seen_ip: ip,
    target_disk_serial: serial,
    own_serials,
  } = machine
  const serials = [...own_serials, ...listDiskSerials(machine)]
  const names = [...listSpellings(mac), name, hostname, ...labels, ...serials]
  return [...names, image?.name, serial, ip, disk?.model, view.is].filter(Boolean).join(' ')
}

const listDiskSerials = ({ known_disks }: Machine): readonly string[] =>
  known_disks?.flatMap(({ serial }) => serial ?? []) ?? []

function fieldsOf(view: MachineView): Description['fields'] {
  const { machine, disk } = view
  const { mac, name, hostname, labels, boot_mode: mode } = machine
  return {
    mac: listSpellings(mac),
    name: [name ?? '', hostname ?? ''],
    label: labels,
    mode: [mode, withoutPrefix(mode)],
    state: listStateNames(view.view.state),
    image: [imageName(view) ?? '', machine.bty_image_ref ?? ''],
    channel: listOf(channelOf(machine)),
    disk: [machine.target_disk_serial ?? '', disk?.model ?? ''],
    serial: [...machine.own_serials, ...listDiskSerials(machine)],
    ip: listOf(machine.last_seen_ip),
    arch: listOf(machine.arch),
    is: listQualities(view),
  }
}

const listOf = (value: string | null): readonly string[] => [value ?? '']

const listQualities = ({ machine, drift }: MachineView): readonly string[] => [
  isUnassigned(machine) ? 'discovered' : 'assigned',
  machine.locked ? 'locked' : 'unlocked',
  ...(machine.cycle.queued_at === null ? [] : ['waiting']),
  ...(drift === null ? [] : ['drifted']),
]

const millis = (iso: string | null) => (iso === null ? null : Date.parse(iso))
