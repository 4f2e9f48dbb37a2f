/** The search of the machines page: terms, fields, times, and the order of columns. */
import { createSelector, type Description } from '../../../fleet/machine/rules/selection.ts'
import { listSpellings } from '../../../kit/net/rules/mac.ts'
import { isUnassigned, type Machine } from '../rules/machine.ts'

/** `q` and `sort` of an address; `filter=discovered` is the deployed spelling. */
export function createMatch(now: () => Date) {
  const select = createSelector<Machine, object>({
    vocabulary: {
      fields: ['mac', 'hostname', 'policy', 'image', 'provisioning', 'workflow', 'ip', 'is'],
      times: ['seen', 'flashed', 'discovered'],
    },
    describe,
  })
  return (machines: readonly Machine[], query: URLSearchParams): readonly Machine[] => {
    const filter = query.get('filter') === 'discovered' ? 'is:discovered' : ''
    const text = `${query.get('q') ?? ''} ${filter}`.trim()
    return select(
      machines,
      { text, sort: query.get('sort') },
      { context: ONE, now: now().getTime() },
    )
  }
}

/** A row depends on nothing beside its machine. */
const ONE = {}

function describe(machine: Machine): Description {
  const { mac, image, last_seen_ip: ip } = machine
  const hostname = machine.hostname ?? ''
  const times = timesOf(machine)
  return {
    text: [...listSpellings(mac), hostname, image, ip].filter(Boolean).join(' '),
    fields: {
      mac: listSpellings(mac),
      hostname: [hostname],
      policy: [machine.boot_policy],
      image: [image ?? ''],
      provisioning: [machine.provisioning_mode],
      workflow: [machine.last_workflow_status ?? ''],
      ip: [ip ?? ''],
      is: [isUnassigned(machine) ? 'discovered' : 'assigned'],
    },
    times,
    order: {
      ...times,
      name: hostname.toLowerCase() || `~${mac}`,
      image: image?.toLowerCase() ?? null,
    },
  }
}

const timesOf = ({ last_seen_at, last_flashed_at, discovered_at }: Machine) => ({
  seen: millis(last_seen_at),
  flashed: millis(last_flashed_at),
  discovered: millis(discovered_at),
})

const millis = (iso: string | null) => (iso === null ? null : Date.parse(iso))
