/** Decides whether a listed disk can be captured, and says in a few words why not. Pure. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { renderUsed, type DiskOffer } from './disk-offer.ts'
import { decideSource } from '#engine/capture/rules/capture.ts'

/** The reason is a few words. */
export function offerSource(disk: SurveyedDisk): DiskOffer {
  const { path, device } = disk
  const isFree = decideSource({ path, exists: true, device }, null).ok
  return { disk, refusal: isFree ? null : (renderUsed(device.uses) ?? renderSize(device)) }
}

const renderSize = ({ identity }: SurveyedDisk['device']): string =>
  identity.sizeBytes === 0 ? 'no medium in it' : 'larger than an image can be: 4 TiB'
