/** What the database says of itself and of who leads, for people. */
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import { forgetMember, readMembers } from './members.ts'
import { readNetbootRow, hasTables, readLease } from './tables.ts'
import { openSession } from './postgres.ts'
import { listDifferences, renderDifference, renderMember } from './rules/lease.ts'
import { parseNetboot, renderNetboot } from './rules/shared-netboot.ts'
import { readVersions } from './secret-rows.ts'

type StatusFact = readonly [name: string, value: string]

/** `url` has the password. Rejects with a Fault if the database is unusable. */
export async function readStatus(
  url: string,
  membership: ClusterMembership | null,
): Promise<readonly StatusFact[]> {
  await using session = await openSession(url)
  const survives = session.survivesHost ? 'yes' : 'no (synchronous_standby_names is empty)'
  const facts: StatusFact[] = [
    ['Database', 'answers'],
    ['Survives', `an acknowledged change survives the loss of the database's host: ${survives}`],
  ]
  if (!(await hasTables(session))) {
    return [...facts, ['Tables', 'none yet; the first server makes them']]
  }
  const { holder, url: at, since, seq, epoch, release, cluster } = await readLease(session)
  const where = at === '' ? '' : ` (${at})`
  facts.push([
    'Leads',
    holder === '' ? 'nobody' : `${holder}${where}, release ${release}, since ${since}`,
  ])
  facts.push(['Changes', `${seq}; the leader has changed ${epoch} times`])
  facts.push(['This server', describeMembership(membership, cluster, seq)])
  const members = await readMembers(session)
  const netboot = await readNetbootRow(session)
  facts.push(...members.map((each): StatusFact => ['Server', renderMember(each, seq, netboot)]))
  if (netboot !== null) facts.push(['Netboot', renderNetboot(parseNetboot(netboot.content))])
  const isShared = (await readVersions(session)).size > 0
  facts.push(['Secrets', isShared ? 'shared: wrapped rows' : "each server's own"])
  const differences = listDifferences(members).map((each): StatusFact => [
    'Differs',
    renderDifference(each),
  ])
  return [...facts, ...differences]
}

export async function forgetByName(url: string, name: string): Promise<number> {
  await using session = await openSession(url)
  return (await hasTables(session)) ? await forgetMember(session, name) : 0
}

function describeMembership(
  membership: ClusterMembership | null,
  cluster: string,
  seq: number,
): string {
  if (membership === null) return 'has not joined yet'
  if (membership.cluster !== cluster) return 'belongs to another database'
  const behind = seq - membership.seq
  if (behind < 0) return `is ${-behind} changes ahead: the database is an older one`
  return behind === 0 ? 'has every change' : `is ${behind} changes behind`
}
