/** The search of the machines page: terms, fields, times, and the order of columns. */
import { createSelector, type Description } from '#fleet/machine/rules/selection.ts'
import type { Vocabulary } from '#fleet/machine/rules/query.ts'
import { MACHINE_PROVISIONING } from '#fleet/workflow/rules/provisioning.ts'
import { listSpellings } from '#kit/net/rules/mac.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import { listStateNames, STATE_VALUES, URGENCY } from '#server/pages/machines/state-search.ts'
import {
  BOOT_POLICIES,
  isArmed,
  isUnassigned,
  WORKFLOW_STATUSES,
  type Machine,
} from '../rules/machine.ts'
import type { StatedMachine } from './machine-view.ts'

interface SearchedFleet {
  /** A new object whenever anything besides the machine changed that states depend on. */
  context(): object
  view(machine: Machine): StatedMachine
  now(): Date
}

export const VOCABULARY: Vocabulary = {
  fields: ['mac', 'hostname', 'state', 'policy', 'image', 'provisioning', 'workflow', 'ip', 'is'],
  times: ['seen', 'flashed', 'discovered'],
  values: {
    state: STATE_VALUES,
    policy: BOOT_POLICIES,
    provisioning: MACHINE_PROVISIONING,
    workflow: WORKFLOW_STATUSES,
    is: ['discovered', 'assigned', 'armed'],
  },
}

/** `q` and `sort` of an address; `filter=discovered` is the deployed spelling. */
export function createMatch({ context, view, now }: SearchedFleet) {
  const select = createSelector<Machine, object>({
    vocabulary: VOCABULARY,
    describe: (machine) => describe(view(machine)),
  })
  return (machines: readonly Machine[], query: URLSearchParams): readonly Machine[] => {
    const filter = query.get('filter') === 'discovered' ? 'is:discovered' : ''
    const text = `${query.get('q') ?? ''} ${filter}`.trim()
    return select(
      machines,
      { text, sort: query.get('sort') },
      { context: context(), now: now().getTime() },
    )
  }
}

function describe({ machine, view }: StatedMachine): Description {
  const { mac, image, last_seen_ip: ip } = machine
  const hostname = machine.hostname ?? ''
  const times = timesOf(machine)
  return {
    text: [...listSpellings(mac), hostname, image, ip, view.is].filter(Boolean).join(' '),
    fields: {
      mac: listSpellings(mac),
      hostname: [hostname],
      state: listStateNames(view.state),
      policy: [machine.boot_policy],
      image: [image ?? ''],
      provisioning: [machine.provisioning_mode],
      workflow: [machine.last_workflow_status ?? ''],
      ip: [ip ?? ''],
      is: [
        isUnassigned(machine) ? 'discovered' : 'assigned',
        ...(isArmed(machine) ? ['armed'] : []),
      ],
    },
    times,
    order: {
      ...times,
      state: URGENCY[view.state],
      name: hostname === '' ? `\uffff${mac}` : naturalKey(hostname),
      next: BOOT_POLICIES.indexOf(machine.boot_policy),
      image: image === null ? null : naturalKey(image),
    },
  }
}

const timesOf = ({ last_seen_at, last_flashed_at, discovered_at }: Machine) => ({
  seen: millis(last_seen_at),
  flashed: millis(last_flashed_at),
  discovered: millis(discovered_at),
})

const millis = (iso: string | null) => (iso === null ? null : Date.parse(iso))
