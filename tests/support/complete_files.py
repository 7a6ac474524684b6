"""Files with every element and attribute of URDF and SDF, each element on a line of its own.

URDF: the specification of ROS, with transmissions, ``ros2_control``, sensors and Gazebo's
extensions. SDF: the specification 1.11, down to where whole elements are left out.
"""

_SOLID = """<inertial>
<origin xyz="0 0 0.1" rpy="0 0 0"/>
<mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial>"""

URDF = f"""<robot name="r" version="1.0">
<material name="red">
<color rgba="1 0 0 1"/>
<texture filename="t.png"/>
</material>
<link name="base" type="x">
{_SOLID}
<visual name="v">
<origin xyz="0 0 0" rpy="0 0 0"/>
<geometry>
<box size="1 1 1"/>
</geometry>
<material name="blue">
<color rgba="0 0 1 1"/>
<texture filename="t.png"/>
</material>
</visual>
<collision name="c">
<origin xyz="0 0 0" rpy="0 0 0"/>
<geometry>
<cylinder radius="0.1" length="1"/>
</geometry>
<verbose value="x"/>
</collision>
<collision name="d">
<geometry>
<sphere radius="0.1"/>
</geometry>
</collision>
<collision name="e">
<geometry>
<capsule radius="0.1" length="1"/>
</geometry>
</collision>
<self_collision_checking/>
</link>
<link name="a">
{_SOLID}
</link>
<link name="b">
{_SOLID}
</link>
<joint name="j" type="revolute">
<origin xyz="0 0 1" rpy="0 0 0"/>
<parent link="base"/>
<child link="a"/>
<axis xyz="0 1 0"/>
<calibration rising="0" falling="0" reference_position="0"/>
<dynamics damping="1" friction="1"/>
<limit lower="-1" upper="1" effort="10" velocity="2" acceleration="1" deceleration="1" jerk="1"/>
<safety_controller soft_lower_limit="-1" soft_upper_limit="1" k_position="1" k_velocity="1"/>
</joint>
<joint name="k" type="revolute">
<parent link="a"/>
<child link="b"/>
<axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="10" velocity="2"/>
<mimic joint="j" multiplier="2" offset="0"/>
</joint>
<transmission name="t">
<type>transmission_interface/SimpleTransmission</type>
<joint name="j">
<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>
<role>joint1</role>
<mechanicalReduction>1</mechanicalReduction>
<offset>0</offset>
</joint>
<actuator name="m">
<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>
<role>actuator1</role>
<mechanicalReduction>50</mechanicalReduction>
</actuator>
</transmission>
<ros2_control name="c" type="system" rw_rate="100" is_async="false">
<hardware>
</hardware>
<joint name="k">
<command_interface name="effort">
<param name="min">-1</param>
<param name="max">1</param>
<initial_value>0</initial_value>
</command_interface>
<state_interface name="position"/>
<param name="kp">1</param>
</joint>
<sensor name="s"/>
<gpio name="g"/>
</ros2_control>
<sensor name="s" type="ray" update_rate="1">
</sensor>
<gazebo reference="a">
<mu1>1</mu1>
<mu2>1</mu2>
</gazebo>
<gazebo reference="b">
<kp>1</kp>
</gazebo>
<gazebo>
<plugin name="p" filename="f"/>
</gazebo>
</robot>
"""

_POSE = '<pose relative_to="" rotation_format="euler_rpy" degrees="false">0 0 0 0 0 0</pose>'
_INERTIAL = f"""<inertial auto="false">
{_POSE}
<mass>1</mass>
<density>1</density>
<inertia>
<ixx>1</ixx>
<ixy>0</ixy>
<ixz>0</ixz>
<iyy>1</iyy>
<iyz>0</iyz>
<izz>1</izz>
</inertia>
<auto_inertia_params/>
<fluid_added_mass/>
</inertial>"""


def _shape(name, inside, more=""):
    return f"""<collision name="{name}">
{_POSE}
<geometry>
{inside}
</geometry>
{more}
</collision>"""


_SHAPES = "\n".join(
    [
        _shape("box", "<box>\n<size>1 1 1</size>\n</box>",
               "<laser_retro>1</laser_retro>\n<max_contacts>5</max_contacts>\n<density>1</density>\n"
               "<surface>\n<bounce>\n<restitution_coefficient>0.1</restitution_coefficient>\n"
               "<threshold>1</threshold>\n</bounce>\n<friction>\n<torsional>\n"
               "<coefficient>0.1</coefficient>\n</torsional>\n<ode>\n<mu>1</mu>\n<mu2>1</mu2>\n"
               "<fdir1>0 0 0</fdir1>\n<slip1>0</slip1>\n<slip2>0</slip2>\n</ode>\n<bullet/>\n"
               "</friction>\n<contact/>\n<soft_contact/>\n</surface>"),
        _shape("sphere", "<sphere>\n<radius>0.1</radius>\n</sphere>"),
        _shape("capsule", "<capsule>\n<radius>0.1</radius>\n<length>1</length>\n</capsule>"),
        _shape("cone", "<cone>\n<radius>0.1</radius>\n<length>1</length>\n</cone>"),
        _shape("cylinder", "<cylinder>\n<radius>0.1</radius>\n<length>1</length>\n</cylinder>"),
        _shape("ellipsoid", "<ellipsoid>\n<radii>1 1 1</radii>\n</ellipsoid>"),
        _shape("plane", "<plane>\n<normal>0 0 1</normal>\n<size>1 1</size>\n</plane>"),
        _shape("empty", "<empty/>"),
        _shape("heightmap", "<heightmap>\n</heightmap>"),
        _shape("image", "<image>\n</image>"),
        _shape("polyline", "<polyline>\n</polyline>"),
    ]
)  # fmt: skip
_AXIS = """<{0}>
<xyz expressed_in="">0 0 1</xyz>
<dynamics>
<damping>1</damping>
<friction>1</friction>
<spring_reference>0</spring_reference>
<spring_stiffness>1</spring_stiffness>
</dynamics>
<limit>
<lower>-1</lower>
<upper>1</upper>
<effort>10</effort>
<velocity>2</velocity>
<stiffness>1e8</stiffness>
<dissipation>1</dissipation>
</limit>
</{0}>"""

SDF = f"""<sdf version="1.11">
<world name="w">
<gravity>0 0 -9.81</gravity>
<magnetic_field>0 0 0</magnetic_field>
<atmosphere type="adiabatic"/>
<audio/>
<wind/>
<gui/>
<physics type="ode"/>
<scene/>
<light name="l" type="point"/>
<spherical_coordinates/>
<plugin name="p" filename="f"/>
<road name="r"/>
<actor name="a"/>
<population name="p"/>
<state world_name="w"/>
<frame name="f">
{_POSE}
</frame>
<joint name="fixed" type="fixed">
<parent>world</parent>
<child>m</child>
</joint>
<model name="m" canonical_link="base" placement_frame="" >
{_POSE}
<static>false</static>
<self_collide>true</self_collide>
<allow_auto_disable>true</allow_auto_disable>
<enable_wind>true</enable_wind>
<frame name="g" attached_to="base">
{_POSE}
</frame>
<plugin name="p" filename="f"/>
<gripper name="g"/>
<link name="base">
{_POSE}
{_INERTIAL}
<gravity>true</gravity>
<enable_wind>true</enable_wind>
<self_collide>true</self_collide>
<kinematic>true</kinematic>
<must_be_base_link>true</must_be_base_link>
<velocity_decay/>
<audio_sink/>
<audio_source/>
<battery name="b"/>
<light name="l" type="point"/>
<particle_emitter name="e" type="point"/>
<projector name="p"/>
<sensor name="camera" type="camera"/>
<sensor name="imu" type="imu">
{_POSE}
<always_on>1</always_on>
<update_rate>1</update_rate>
<imu>
</imu>
</sensor>
{_SHAPES}
<visual name="v">
{_POSE}
<cast_shadows>true</cast_shadows>
<laser_retro>1</laser_retro>
<transparency>0</transparency>
<visibility_flags>1</visibility_flags>
<material/>
<geometry>
<box>
<size>1 1 1</size>
</box>
</geometry>
</visual>
</link>
<link name="a">
</link>
<link name="b">
</link>
<joint name="j" type="revolute">
{_POSE}
<parent>base</parent>
<child>a</child>
{_AXIS.format("axis")}
<physics/>
<sensor name="ft" type="force_torque">
<force_torque>
<frame>child</frame>
<measure_direction>child_to_parent</measure_direction>
</force_torque>
</sensor>
</joint>
<joint name="k" type="revolute">
<parent>a</parent>
<child>b</child>
<axis>
<xyz>0 0 1</xyz>
<mimic joint="j" axis="axis">
<multiplier>2</multiplier>
<offset>0</offset>
<reference>0</reference>
</mimic>
</axis>
</joint>
</model>
</world>
</sdf>
"""
