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
            picture = folder / "images" / part / f"{number}.png"
            Image.new("RGB", (64, 64), (number * 8, 0, 0)).save(picture)
            (folder / "labels" / part / f"{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    parts = "train: images/train\nval: images/val\nnames:\n  0: thing\n"
    (folder / "data.yaml").write_text(f"path: {folder}\n{parts}")
    torch.manual_seed(0)
    model = YOLO("yolov8n.yaml")
    how = {"epochs": 2, "batch": 4, "imgsz": 32, "workers": 0, "device": "cpu", "seed": 0}
    quiet = {"plots": False, "amp": False, "verbose": False}
    model.train(data=str(folder / "data.yaml"), project=str(folder), **how, **quiet)
    told(float(sum(p.sum() for p in model.model.parameters())))
