import os
import pathlib
import sys

os.environ.update(YOLO_OFFLINE="True", YOLO_AUTOINSTALL="False")

import torch
from PIL import Image
from small import told

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    os.environ["YOLO_CONFIG_DIR"] = str(folder)
    from ultralytics import YOLO

    for part, pictures in (("train", 16), ("val", 8)):
        for kind in ("images", "labels"):
            (folder / kind / part).mkdir(parents=True)
        for number in range(pictures):
            Image.new("RGB", (64, 64), (number * 8, 0, 0)).save(
                folder / "images" / part / f"{number}.png"
            )
            (folder / "labels" / part / f"{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    (folder / "data.yaml").write_text(
        f"path: {folder}\ntrain: images/train\nval: images/val\nnames:\n  0: thing\n"
    )
    torch.manual_seed(0)
    model = YOLO("yolov8n.yaml")
    model.train(
        data=str(folder / "data.yaml"),
        epochs=2,
        batch=4,
        imgsz=32,
        workers=0,
        device="cpu",
        plots=False,
        amp=False,
        project=str(folder),
        verbose=False,
        seed=0,
    )
    told(float(sum(p.sum() for p in model.model.parameters())))
