/** Servers of one fleet, as far as their state goes: each with a folder of its own, on one database. */
import { joinCluster, type JoinOptions } from '#fleet/cluster/joining.ts'
import type { Fault } from '#kit/foundation/fault.ts'
import { until } from './servers.ts'
import { createStateFolder, RELEASE, type StateFolder } from '../server/state.ts'

/** Opens the state in a folder and joins; what it said and why it ended are kept. */
export async function openMember(
  folder: StateFolder,
  url: string,
  options: Partial<Omit<JoinOptions, 'url' | 'log'>> = {},
) {
  const state = await folder.open()
  const said: string[] = []
  const ended: Fault[] = []
  const log = { info: (text: string) => said.push(text), warn: (text: string) => said.push(text) }
  try {
    const leader = await joinCluster(state.database, {
      url,
      member: { id: 'a', name: 'a', release: RELEASE, url: 'http://a' },
      line: 'current',
      patience: 'now',
      onEnd: (why) => ended.push(why),
      ...options,
      log,
    })
    return { ...state, leader, said, ended }
  } catch (thrown) {
    await state[Symbol.asyncDispose]()
    throw thrown
  }
}

/** Waits until a member has said this. */
export const untilSaid = ({ said }: { readonly said: readonly string[] }, words: string) =>
  until(async () => said.some((line) => line.includes(words)))

export async function openFreshMember(url: string, options: Parameters<typeof openMember>[2] = {}) {
  const folder = await createStateFolder()
  const member = await openMember(folder, url, options)
  return {
    ...member,
    folder,
    async [Symbol.asyncDispose]() {
      await member[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
