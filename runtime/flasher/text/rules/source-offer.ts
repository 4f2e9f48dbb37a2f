/** Decides whether a listed disk can be captured, and says in a few words why not. Pure. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { renderUsed, type DiskOffer } from './disk-offer.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { decideSource } from '#engine/capture/rules/capture.ts'

/** The reason is a few words. */
export function offerSource(disk: SurveyedDisk): DiskOffer {
  const { path, device } = disk
  const isFree = decideSource({ path, exists: true, device }, null).ok
  return { disk, refusal: isFree ? null : (renderUsed(device.uses) ?? renderSize(device)) }
}

const renderSize = ({ identity }: SurveyedDisk['device']): string =>
  identity.sizeBytes === 0 ? WIZARD_TEXTS.disk.refused.noMedium : WIZARD_TEXTS.capture.disk.tooLarge
