/** Opens qcow2 images that a test has damaged, near or far, and gives the Fault. */
import { openQcow2 } from '#engine/image/qcow2-blocks.ts'
import { faultOf } from '../collect.ts'
import { collectBlocks, makeContent, sourceOf } from './qcow2-image.ts'

const MIB = 2 ** 20

/** What the images hold before they are damaged. */
export const CONTENT = makeContent(3 * MIB + 512)

export const openBytes = (image: Buffer) => openQcow2(sourceOf(image))

/** The Fault of opening and reading it all. */
export const readFault = (image: Buffer, isFar = false) =>
  faultOf(async () => {
    await using blocks = await openQcow2(sourceOf(image, { isFar }))
    await collectBlocks(blocks, MIB)
  })
