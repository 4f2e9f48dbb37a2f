/** Limits concurrent password checks, in total and per network; networks take turns. */

/** Each check is slow on purpose, and takes memory and a thread that boot files need too. */
const MAX_CHECKS = 4
/** Half of them stay free for everybody else. */
const MAX_CHECKS_OF_NETWORK = 2
const MAX_WAITING_OF_NETWORK = 16
const MAX_WAITING = 256

interface LoginLane {
  checking: number
  /** The attempts that wait, in the order in which they came. */
  readonly waiting: (() => void)[]
}

export function createLoginLanes() {
  /** Whose turn was longest ago stands first. */
  const lanes = new Map<string, LoginLane>()
  let [checking, waiting] = [0, 0]

  function startNext(): void {
    while (checking < MAX_CHECKS) {
      const next = lanes.entries().find(([, lane]) => isReady(lane))
      if (next === undefined) return
      const [network, lane] = next
      lanes.delete(network)
      lanes.set(network, lane)
      checking += 1
      lane.checking += 1
      waiting -= 1
      lane.waiting.shift()?.()
    }
  }

  async function wait<T>(network: string, lane: LoginLane, check: () => Promise<T>): Promise<T> {
    const turn = Promise.withResolvers<void>()
    waiting += 1
    lane.waiting.push(turn.resolve)
    startNext()
    await turn.promise
    try {
      return await check()
    } finally {
      checking -= 1
      lane.checking -= 1
      if (lane.checking === 0 && lane.waiting.length === 0) lanes.delete(network)
      startNext()
    }
  }

  return {
    /** Null: too many of this network, or of all, wait already. */
    run<T>(network: string, check: () => Promise<T>): Promise<T> | null {
      const lane = lanes.get(network) ?? { checking: 0, waiting: [] }
      if (waiting >= MAX_WAITING || lane.waiting.length >= MAX_WAITING_OF_NETWORK) return null
      lanes.set(network, lane)
      return wait(network, lane, check)
    },
  }
}

const isReady = ({ checking, waiting }: LoginLane): boolean =>
  waiting.length > 0 && checking < MAX_CHECKS_OF_NETWORK
