/** One fetch and one decode of an image that serve several disks through a bounded buffer. */
import { decideLeftBehind } from './rules/left-behind.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import type { Blocks } from '../image/blocks.ts'
import { untilAborted } from '../../kit/host/watch.ts'
import type { Counted } from './counted-source.ts'
import { openImage, type OpenStream } from './image-stream.ts'
import { createWaits } from './meter.ts'
import type { FlashPlan } from './rules/flash.ts'
import type { Decoders } from '../image/formats.ts'
import type { Source } from '../image/sources/source.ts'
import { createSharedSlots, splitPiece, wholeGrains, type SharedPiece } from './shared-buffer.ts'
import { createLane, type Lane, type SharedContent } from './shared-lane.ts'
import { SLOT_BYTES } from './write-slots.ts'

interface SharedSources {
  readonly source: Source
  /** Further places of the same image. */
  readonly mirrors: readonly Source[]
}

/** One disk's flash, and its share of the image. */
interface SharedFlash {
  readonly plan: FlashPlan
  readonly openStream: OpenStream
  /** The disk needs nothing more. */
  leave(): void
}

/** Opens an image for several disks: an image stream for each plan. A Fault as `openImage` has it. */
export async function shareImage(
  decoders: Decoders,
  plans: readonly [FlashPlan, ...FlashPlan[]],
  { source, mirrors }: SharedSources,
  signal: AbortSignal,
): Promise<readonly SharedFlash[]> {
  const around = { waits: createWaits(), signal, mirrors }
  const [plan] = plans
  const { counted, open, enter } = await openImage(decoders, plan, source, around)
  const verifies = plan.verify !== 'none'
  const openLane = shareContent({ counted, open: () => open(), enter, verifies, signal })
  return plans.map((each) => ({ plan: each, ...openLane() }))
}

interface SharedOptions {
  readonly counted: Counted
  /** Opens the image's decoded content, once. */
  readonly open: () => Promise<Blocks>
  /** Opens it again from an offset on; null: it can only be read from its beginning. */
  readonly enter: ((from: number) => Blocks) | null
  /** Whether what is written will be read back. */
  readonly verifies: boolean
  readonly signal: AbortSignal
}

/** What is read is counted, and its digest checked, for all disks at once; a call gives one disk its share. */
function shareContent(options: SharedOptions): () => Omit<SharedFlash, 'plan'> {
  const { counted } = options
  const shared = createShared(options)
  let checked: (() => void) | null = null
  /** Computed at the first call: a digest can be asked for only once. */
  const checkDigest = () => {
    checked ??= keepOutcome(() => counted.checkDigest())
    checked()
  }
  return () => {
    const { imageStream, leave } = shared.open()
    return {
      openStream: () =>
        Promise.resolve({
          counted: { ...counted, checkDigest },
          map: null,
          pool: shared.pool,
          open: () => Promise.resolve(imageStream),
        }),
      leave,
    }
  }
}

function keepOutcome(act: () => void): () => void {
  try {
    act()
    return () => {}
  } catch (thrown) {
    return () => {
      throw thrown
    }
  }
}

function createShared(options: SharedOptions) {
  const slots = createSharedSlots()
  const lanes = new Set<Lane>()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let failure: { readonly thrown: unknown } | null = null
  let isEnded = false
  let pumping: Promise<void> | null = null
  const starving = createStarving(options, lanes, slots)

  const wakeAll = () => {
    for (const lane of lanes) lane.wake()
  }

  function start() {
    pumping ??= pump(options, lanes, starving.takeSlot)
      .catch((thrown: unknown) => {
        failure = { thrown }
      })
      .finally(() => {
        isEnded = true
        wakeAll()
        end()
      })
  }

  const shared: SharedContent = {
    ended,
    enter: options.enter,
    release: slots.release,
    abandon: slots.abandon,
    async take(lane) {
      start()
      for (;;) {
        const piece = lane.shift()
        if (piece !== null) return piece
        if (failure !== null) throw failure.thrown
        if (isEnded || lane.isDetached()) return null
        starving.detachSlow()
        await lane.untilWoken()
      }
    },
    leave(lane) {
      lanes.delete(lane)
      wakeAll()
    },
  }
  return {
    pool: slots.pool,
    open() {
      const lane = createLane(shared)
      lanes.add(lane)
      return lane
    },
  }
}

/** Reads the image to its end, or until no disk wants more of it. */
async function pump(
  { open, verifies, signal }: SharedOptions,
  lanes: ReadonlySet<Lane>,
  takeSlot: () => Promise<Buffer>,
) {
  await using blocks = await open()
  const filler = createFiller(blocks)
  function push(piece: LanePiece) {
    const shared = { ...piece, users: lanes.size, abandoned: 0, isCounted: true }
    for (const lane of lanes) lane.push(shared)
  }
  for (let offset = 0; lanes.size > 0;) {
    signal.throwIfAborted()
    const bytes = await readPiece({ filler, offset, verifies, takeSlot, push })
    if (bytes === 0) return
    offset += bytes
  }
}

/** Waits for slots, and leaves slow disks behind meanwhile. */
function createStarving(
  { enter, signal }: SharedOptions,
  lanes: Set<Lane>,
  slots: ReturnType<typeof createSharedSlots>,
) {
  let isStarved = false

  /** Lanes that have nothing left to write wait for those that hold the whole buffer. */
  function detachSlow() {
    if (enter === null || !isStarved) return
    const all = [...lanes]
    const fed = all.map(({ backlog, rate }) => ({ backlog: backlog(), rate: rate() }))
    for (const index of decideLeftBehind(fed)) {
      const lane = all[index]
      if (lane === undefined) continue
      lanes.delete(lane)
      lane.detach()
    }
  }

  return {
    detachSlow,
    async takeSlot() {
      const slot = slots.tryTakeDecoded()
      if (slot !== null) return slot
      isStarved = true
      const freed = slots.untilDecoded()
      detachSlow()
      // A disk that hangs says nothing: only its time goes by.
      const looking = setInterval(detachSlow, COMPARE_MS)
      try {
        return await untilAborted(signal, freed)
      } finally {
        clearInterval(looking)
        isStarved = false
      }
    },
  }
}

/** The time between two looks at the speeds of the disks while they wait for one another. */
const COMPARE_MS = 250

type LanePiece = Pick<SharedPiece, 'offset' | 'bytes' | 'slot' | 'split'>

interface PieceReading {
  readonly filler: Filler
  readonly offset: number
  readonly verifies: boolean
  readonly takeSlot: () => Promise<Buffer>
  readonly push: (piece: LanePiece) => void
}

/** Reads what comes next and hands it on; how many bytes it was, 0 at the end. */
async function readPiece(reading: PieceReading): Promise<number> {
  const { filler, offset, verifies, takeSlot, push } = reading
  const skipped = filler.takeZeros(Number.MAX_SAFE_INTEGER)
  const zeros = wholeGrains(skipped)
  if (zeros > 0) push({ offset, bytes: zeros, slot: null, split: { data: [], zeros: [] } })
  const at = offset + zeros
  const slot = await takeSlot()
  const room = SLOT_BYTES - (at % SLOT_BYTES)
  const rest = skipped - zeros
  slot.fill(0, 0, rest)
  const bytes = rest + (await filler.fill(slot.subarray(rest, room)))
  if (bytes > 0) {
    slot.fill(0, bytes)
    push({ offset: at, bytes, slot, split: splitPiece(slot, bytes, verifies) })
  }
  return zeros + bytes
}
