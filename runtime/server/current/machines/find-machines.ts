/** Machines, their labels and what can be done with them, as the search of everything finds them. */
import { findMac } from '#kit/net/rules/mac.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import { address, type Content } from '#kit/web/ui/html.ts'
import { MACHINES_PATH, machinePath } from '#server/pages/machines/machines-list.ts'
import type { Machine } from './rules/machine.ts'
import { hasPower } from '#server/current/power/power-card.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'

const MAX_MACHINES = 8
const MAX_LABELS = 6
/** With more, nobody has found the one yet. */
const MAX_WITH_DEEDS = 2

/** Its first word is the one to type. */
const MACHINE = {
  configure: 'Configure {name}',
  flash: 'Flash {name}',
  timeline: 'Timeline of {name}',
  runs: 'Runs of {name}',
  power: 'Power of {name}',
  capture: 'Capture a disk of {name}',
} as const

type Deed = keyof typeof MACHINE

interface DeedRow {
  readonly deed: Deed
  /** The route that permits it. */
  readonly takes: readonly ['GET' | 'POST', string]
  pathOf(mac: string): string
}

const OF_MACHINE = '/ui/machines/:mac'

const DEEDS: readonly DeedRow[] = [
  { deed: 'configure', takes: ['POST', OF_MACHINE], pathOf: (mac) => `${machinePath(mac)}#intent` },
  {
    deed: 'flash',
    takes: ['POST', `${OF_MACHINE}/do/flash`],
    pathOf: (mac) => `${machinePath(mac)}#intent`,
  },
  {
    deed: 'timeline',
    takes: ['GET', `${OF_MACHINE}/timeline`],
    pathOf: (mac) => `${machinePath(mac)}/timeline`,
  },
  { deed: 'runs', takes: ['GET', '/ui/runs'], pathOf: (mac) => address('/ui/runs', { mac }) },
  {
    deed: 'power',
    takes: ['POST', `${OF_MACHINE}/do/power`],
    pathOf: (mac) => `${machinePath(mac)}#power`,
  },
  {
    deed: 'capture',
    takes: ['POST', `${OF_MACHINE}/do/capture`],
    pathOf: (mac) => `${machinePath(mac)}#capture`,
  },
]

interface FoundMachines {
  readonly machines: readonly FoundLink[]
  readonly deeds: readonly FoundLink[]
  readonly labels: readonly FoundLink[]
}

/** As the list searches. A first word such as `flash` selects the deed for what the rest finds. */
export async function findMachines(context: CurrentContext, text: string): Promise<FoundMachines> {
  const all = await context.site.machines.list()
  const [first = '', ...others] = splitFind(text)
  if (first === '') return { machines: [], deeds: [], labels: [] }
  const named = readDeed(first)
  const found = match(context, all, text)
  const meant = found.length === 0 && named !== null ? match(context, all, others.join(' ')) : []
  const deeds = listDeeds(context, named === null ? null : [named])
  return {
    machines: listMachines(found, text),
    deeds: [
      ...(meant.length > MAX_MACHINES ? [] : describeDeeds(meant, deeds)),
      ...(found.length > MAX_WITH_DEEDS ? [] : describeDeeds(found, listDeeds(context, null))),
    ],
    labels: listLabels(all, splitFind(text)),
  }
}

/** Other words for them. */
const ALSO: Partial<Readonly<Record<Deed, readonly string[]>>> = {
  flash: ['arm'],
  power: ['restart', 'reboot'],
}

/** Also by its beginning; null: none. */
const readDeed = (word: string): Deed | null =>
  DEEDS.find(
    ({ deed }) =>
      word.length > 2 &&
      [MACHINE[deed].toLowerCase(), ...(ALSO[deed] ?? [])].some((verb) => verb.startsWith(word)),
  )?.deed ?? null

function match(
  { site }: CurrentContext,
  all: readonly Machine[],
  text: string,
): readonly Machine[] {
  if (text.trim() === '') return []
  const found = site.views.match(all, new URLSearchParams({ q: text, sort: 'name' }))
  // An exact name means one machine, even if others contain it.
  const mac = findMac(text.trim())
  const isMeant = (machine: Machine) =>
    machine.mac === mac || nameOf(machine).toLowerCase() === text.trim().toLowerCase()
  return [...found.filter(isMeant), ...found.filter((machine) => !isMeant(machine))]
}

function listMachines(found: readonly Machine[], text: string): readonly FoundLink[] {
  const words = splitFind(text)
  const rows = found.slice(0, MAX_MACHINES).map((machine): FoundLink => {
    const name = nameOf(machine)
    const serials = machine.own_serials.filter((serial) => hasWord(serial, words))
    const about = [name === machine.mac ? '' : machine.mac, ...serials, ...machine.labels]
    return {
      href: machinePath(machine.mac),
      title: name,
      about: about.filter(Boolean).join(' · '),
    }
  })
  if (found.length <= MAX_MACHINES) return rows
  const href = address(MACHINES_PATH, { q: text })
  return [
    ...rows,
    {
      href,
      title: fillCount(
        { one: 'Show 1 machine in the list', other: 'Show {count} machines in the list' },
        found.length,
      ),
    },
  ]
}

/** A serial number is shown only if the search matched it. */
const hasWord = (serial: string, words: readonly string[]): boolean =>
  words.some((word) => word.length > 2 && serial.toLowerCase().includes(word))

/** Only what the role permits. `wanted` null: all. */
const listDeeds = (context: CurrentContext, wanted: readonly Deed[] | null): readonly DeedRow[] =>
  DEEDS.filter(
    ({ deed, takes: [method, path] }) =>
      (wanted === null || wanted.includes(deed)) &&
      (deed !== 'power' || hasPower(context)) &&
      context.site.mayOpen(context.event, path, method),
  )

const describeDeeds = (
  machines: readonly Machine[],
  deeds: readonly DeedRow[],
): readonly FoundLink[] =>
  machines.flatMap((machine) =>
    deeds.map(({ deed, pathOf }) => ({
      href: pathOf(machine.mac),
      title: fill(MACHINE[deed], { name: nameOf(machine) }),
    })),
  )

function listLabels(all: readonly Machine[], words: readonly string[]): readonly FoundLink[] {
  const counts = new Map<string, number>()
  for (const { labels } of all) {
    for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1)
  }
  return [...counts]
    .filter(([label]) => hasWords(label, words))
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, MAX_LABELS)
    .map(([label, count]) => ({
      href: address(MACHINES_PATH, { q: `label:"${label}"` }),
      title: label,
      about: fillCount({ one: '1 machine', other: '{count} machines' }, count),
    }))
}

export interface FoundLink {
  readonly href: string
  readonly title: string
  readonly about?: Content
}

export const FIND_GROUPS = {
  machines: 'Machines',
  actions: 'Actions',
  labels: 'Labels',
  images: 'Images',
  people: 'People',
  settings: 'Settings',
  pages: 'Pages',
} as const

export interface FoundGroup {
  readonly name: keyof typeof FIND_GROUPS
  readonly rows: readonly FoundLink[]
}

/** In lower case; empty without a search. */
export const splitFind = (text: string): readonly string[] =>
  text.toLowerCase().split(/\s+/).filter(Boolean)

export function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase()
  return words.every((word) => lower.includes(word))
}
