"""From images and masks to trained segmenters and refiners."""
